"""Read a whole log once: a file, a gzip file or standard input; print what it was."""

from __future__ import annotations

import gzip
import json
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from keylag_exporters.slow_log.classes import StatementClass, Totals
from keylag_exporters.slow_log.digest import Digest
from keylag_exporters.slow_log.events import SEPARATOR
from keylag_exporters.slow_log.server_start import without_server_start
from keylag_exporters.slow_log.stream import BLOCK_BYTES, MAX_EVENT_BYTES, Stream

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

ONCE_CLASSES = 200_000
_SIGN = b"Query_time: "
"""What each event has, and hardly anything else."""
_GZIP = b"\x1f\x8b"
_TIMESTAMP = re.compile(rb"^SET [^;\n]*timestamp=(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Window:
    """From when to when events count, Unix seconds; the end is not part of it."""

    since: float = float("-inf")
    until: float = float("inf")

    @classmethod
    def of(cls, since: str | None, until: str | None) -> Window:
        """Return the window between two ISO times (UTC unless they say) or numbers."""
        return cls(
            _moment(since, float("-inf")),
            _moment(until, float("inf")),
        )

    @property
    def is_everything(self) -> bool:
        """Tell whether nothing is left out."""
        return self == Window()


def _moment(text: str | None, default: float) -> float:
    """Return a time as Unix seconds."""
    if text is None:
        return default
    try:
        return float(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def report(file: str, output: str, window: Window, out: TextIO) -> None:
    """Read `-` or a file and print it as json, as a table, or as a log again.

    Raises OSError where the file cannot be read, ValueError if it is no slow log.
    """
    blocks = _of_slow_log(_blocks(file), file)
    pieces = blocks if window.is_everything else _events(blocks, window)
    if output == "log":
        for data in pieces:
            out.buffer.write(data)
        return
    digest = Digest(ONCE_CLASSES)
    stream = Stream(digest)
    for data in pieces:
        stream.write(data)
    stream.finish()
    digest.flush()
    _PRINTERS[output](digest, out)


def _blocks(file: str) -> Iterator[bytes]:
    """Yield a file's bytes in blocks, unpacked if it is packed."""
    with _open(file) as opened:
        while data := opened.read(BLOCK_BYTES):
            yield data


def _open(file: str) -> IO[bytes]:
    """Open a file or standard input; gzip is recognised by its first bytes."""
    opened = sys.stdin.buffer if file == "-" else open(file, "rb")  # noqa: SIM115, PTH123 -- closed by the caller; `file` may be a pipe
    packed = cast("io.BufferedReader", opened).peek(2).startswith(_GZIP)
    return gzip.GzipFile(fileobj=opened) if packed else opened  # type: ignore[return-value]


def _of_slow_log(blocks: Iterator[bytes], file: str) -> Iterator[bytes]:
    """Pass blocks on from the first event; raise ValueError where there is none.

    A server that has started and logged nothing yet has written its start alone.
    """
    held: list[bytes] = []
    size = 0
    for data in blocks:
        held.append(data)
        size += len(data)
        if _SIGN in b"".join(held[-2:]):
            yield from held
            yield from blocks
            return
        if size > MAX_EVENT_BYTES:
            break
    if without_server_start(b"".join(held)).strip():
        name = "standard input" if file == "-" else file
        message = (
            f"{name} is no slow log: there is no event in it. The server says where "
            "its log is: SELECT @@datadir, @@slow_query_log_file"
        )
        raise ValueError(message)


def _events(blocks: Iterator[bytes], window: Window) -> Iterator[bytes]:
    """Yield the events within a window, each with its hash, semicolon and newline.

    Times are those of SET timestamp, which every event has, as Unix seconds.
    """
    rest = b""
    for data in blocks:
        *whole, rest = (rest + data).split(SEPARATOR)
        for event in whole:
            if _within(event, window):
                yield b"#" + event.removeprefix(b"#") + b";\n"
    if rest.strip() and _within(rest, window):
        yield b"#" + rest.removeprefix(b"#")


def _within(event: bytes, window: Window) -> bool:
    """Tell whether an event's time is within a window; without a time it is not."""
    found = _TIMESTAMP.search(event)
    return bool(found) and window.since <= int(found[1]) < window.until  # type: ignore[index]


def by_id(digest: Digest) -> list[dict[str, Any]]:
    """Return the classes by fingerprint, most time first, each with its tags."""
    merged: dict[str, list[StatementClass]] = {}
    for one in digest.classes.values():
        merged.setdefault(one.id, []).append(one)
    classes = [_merge(same) for same in merged.values()]
    return sorted(classes, key=lambda one: -one["query_time_seconds_sum"])


def _merge(same: list[StatementClass]) -> dict[str, Any]:
    """Return the classes of one fingerprint as one."""
    sums = Totals()
    for one in same:
        sums.add(one.totals)
    first = same[0]
    return {
        "id": first.id,
        "fingerprint": first.fingerprint.decode("utf-8", "replace"),
        "table_class": first.table_class,
        **_sums(sums),
        "by_tag": [
            {
                "route": one.tag.route,
                "operation": one.tag.operation,
                **_sums(one.totals),
            }
            for one in same
            if any(one.tag)
        ],
    }


def _sums(totals: Totals) -> dict[str, Any]:
    """Return sums with times in seconds."""
    sums = totals.as_dict()
    del sums["buckets"]
    for name in ("query_time", "lock_time"):
        sums[f"{name}_seconds_sum"] = sums.pop(f"{name}_us") / 1e6
    return sums


def _print_json(digest: Digest, out: TextIO) -> None:
    """Print everything as one JSON object."""
    content = {
        "classes": by_id(digest),
        "events": digest.events,
        "skipped": digest.skipped,
    }
    json.dump(content, out, indent=1)
    out.write("\n")


def _print_table(digest: Digest, out: TextIO) -> None:
    """Print one line per class."""
    total = digest.total.query_time_us / 1e6 or 1.0
    out.write(f"{'share':>6} {'seconds':>12} {'calls':>9}  class\n")
    for one in by_id(digest):
        seconds, count = one["query_time_seconds_sum"], one["count"]
        out.write(
            f"{seconds / total:6.1%} {seconds:12.6f} {count:9d}"
            f"  {one['id']} {one['table_class']}: {one['fingerprint'][:100]}\n"
        )
    out.write(f"{digest.events} events, {digest.skipped} skipped\n")


_PRINTERS = {"json": _print_json, "table": _print_table}
