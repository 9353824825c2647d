"""Reads a whole log once, from a file, gzip file or standard input, and prints it."""

from __future__ import annotations

import gzip
import json
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from keylag_exporters.slow_log.aggregator import StatementAggregator
from keylag_exporters.slow_log.event_splitter import (
    CHUNK_BYTES,
    MAX_EVENT_BYTES,
    EventSplitter,
)
from keylag_exporters.slow_log.events import NEXT_EVENT, SEPARATOR
from keylag_exporters.slow_log.startup_banner import strip_startup_banner
from keylag_exporters.slow_log.statement_classes import Aggregate, StatementClass

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

MAX_CLASSES = 200_000
_EVENT_SIGNATURE = b"Query_time: "
"""Text that identifies a slow log: each event contains it."""
_GZIP = b"\x1f\x8b"
_TIMESTAMP = re.compile(rb"^SET [^;\n]*timestamp=(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class TimeWindow:
    """A half-open range of event times, in Unix seconds."""

    since: float = float("-inf")
    until: float = float("inf")

    @classmethod
    def parse(cls, since: str | None, until: str | None) -> TimeWindow:
        """Return the window between two ISO times (default UTC) or Unix times.

        Raises ValueError.
        """
        return cls(
            _parse_time(since, float("-inf")),
            _parse_time(until, float("inf")),
        )

    @property
    def is_everything(self) -> bool:
        """Whether the window includes all events."""
        return self == TimeWindow()


def _parse_time(text: str | None, default: float) -> float:
    if text is None:
        return default
    try:
        return float(text)
    except ValueError:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def print_report(file: str, output: str, window: TimeWindow, out: TextIO) -> None:
    """Read `-` or a file; write a table, JSON, or the events as a log.

    Raises OSError if the file is unreadable, ValueError if it is not a slow log.
    """
    chunks = _require_slow_log(_read_chunks(file), file)
    pieces = chunks if window.is_everything else _select_events(chunks, window)
    if output == "log":
        for data in pieces:
            out.buffer.write(data)
        return
    aggregator = StatementAggregator(MAX_CLASSES)
    splitter = EventSplitter(aggregator)
    for data in pieces:
        splitter.write(data)
    splitter.finish()
    aggregator.flush()
    _PRINTERS[output](aggregator, out)


def _read_chunks(file: str) -> Iterator[bytes]:
    with _open(file) as file_object:
        while data := file_object.read(CHUNK_BYTES):
            yield data


def _open(file: str) -> IO[bytes]:
    """Open a file or standard input; gzip is detected by its magic number."""
    file_object = sys.stdin.buffer if file == "-" else open(file, "rb")  # noqa: SIM115, PTH123 -- closed by the caller; `file` may be a pipe
    packed = cast("io.BufferedReader", file_object).peek(2).startswith(_GZIP)
    return gzip.GzipFile(fileobj=file_object) if packed else file_object  # type: ignore[return-value]


def _require_slow_log(chunks: Iterator[bytes], file: str) -> Iterator[bytes]:
    """Pass chunks on, starting with the first event.

    Raises ValueError if there is no event. A log that has only the startup banner is
    valid and empty.
    """
    buffered: list[bytes] = []
    size = 0
    for data in chunks:
        buffered.append(data)
        size += len(data)
        if _EVENT_SIGNATURE in b"".join(buffered[-2:]):
            yield from buffered
            yield from chunks
            return
        if size > MAX_EVENT_BYTES:
            break
    if strip_startup_banner(b"".join(buffered)).strip():
        name = "standard input" if file == "-" else file
        message = (
            f"{name} is not a slow log: it contains no event. The server reports the "
            "location of its log: SELECT @@datadir, @@slow_query_log_file"
        )
        raise ValueError(message)


def _select_events(chunks: Iterator[bytes], window: TimeWindow) -> Iterator[bytes]:
    """Yield the events within a window, each with its separator.

    The time of an event is that of its SET timestamp, in Unix seconds.
    """
    rest, selected = b"", False
    for data in chunks:
        text = rest + data
        if b";\r\n#" in text:
            text = text.replace(b"\r\n", b"\n")
        *whole, rest = text.split(SEPARATOR)
        for piece in whole:
            selected = _is_within(piece, window, is_previous_within=selected)
            if selected:
                yield b"#" + piece.removeprefix(b"#") + b";\n"
    if rest.strip() and _is_within(rest, window, is_previous_within=selected):
        yield b"#" + rest.removeprefix(b"#")


def _is_within(piece: bytes, window: TimeWindow, *, is_previous_within: bool) -> bool:
    """Return whether a piece's time is in a window; an event without time is outside.

    A piece without a header is a command, which belongs to the header before it.
    """
    match = _TIMESTAMP.search(piece)
    if match is None:
        return is_previous_within and not NEXT_EVENT.match(piece)
    return window.since <= int(match[1]) < window.until


def merge_by_id(aggregator: StatementAggregator) -> list[dict[str, Any]]:
    """Return the classes merged over tags, as JSON types, most time first."""
    merged: dict[str, list[StatementClass]] = {}
    for one in aggregator.classes.values():
        merged.setdefault(one.id, []).append(one)
    classes = [_merge_classes(same) for same in merged.values()]
    return sorted(classes, key=lambda one: -one["query_time_seconds_sum"])


def _merge_classes(same: list[StatementClass]) -> dict[str, Any]:
    counters = Aggregate()
    for one in same:
        counters.add(one.aggregate)
    first = same[0]
    return {
        "id": first.id,
        "statement": first.readable,
        "fingerprint": first.fingerprint.decode("utf-8", "replace"),
        "table_class": first.table_class,
        **_counters(counters),
        "by_tag": [
            {
                "route": one.tag.route,
                "operation": one.tag.operation,
                **_counters(one.aggregate),
            }
            for one in same
            if any(one.tag)
        ],
    }


def _counters(aggregate: Aggregate) -> dict[str, Any]:
    counters = aggregate.as_dict()
    del counters["buckets"]
    for name in ("query_time", "lock_time"):
        counters[f"{name}_seconds_sum"] = counters.pop(f"{name}_us") / 1e6
    return counters


def _print_json(aggregator: StatementAggregator, out: TextIO) -> None:
    content = {
        "classes": merge_by_id(aggregator),
        "events": aggregator.event_count,
        "skipped": aggregator.skipped_events,
    }
    json.dump(content, out, indent=1)
    out.write("\n")


def _print_table(aggregator: StatementAggregator, out: TextIO) -> None:
    total = aggregator.total.query_time_us / 1e6 or 1.0
    out.write(f"{'share':>6} {'seconds':>12} {'calls':>9}  class\n")
    for one in merge_by_id(aggregator):
        seconds, count = one["query_time_seconds_sum"], one["count"]
        out.write(
            f"{seconds / total:6.1%} {seconds:12.6f} {count:9d}"
            f"  {one['id']} {one['table_class']}: {one['statement']}\n"
        )
    out.write(f"{aggregator.event_count} events, {aggregator.skipped_events} skipped\n")


_PRINTERS = {"json": _print_json, "table": _print_table}
