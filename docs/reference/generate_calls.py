"""Write docs/reference/calls.md: what today's Keystone does for each token call.

    python docs/reference/generate_calls.py

It starts a stack of its own, once for each way to cache, lets OSProfiler follow
one call of each kind, and takes some minutes.  The tables are those of OpenStack's
"Keystone DB / cache operations analysis" (performance-docs, 2016).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console

from keylag.demo import CLOUD
from keylag.server_timing import ServerTiming, parse
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools
from keylag.tools.venvs import keystone_version
from keylag.trace import analysis, keystone, sources
from keylag.trace.calls import CALLS
from keylag.trace.explanation import Counted, Explanation
from keylag.trace.rows import shortened

PAGE: Final = Path(__file__).with_name("calls.md")
WARM_UP: Final = 3
"""Calls of a kind before the one that is followed."""
OUTLIERS: Final = 5
WAYS: Final[Mapping[str, StackOptions]] = {
    "cache disabled": StackOptions(
        processes=1, environment={"OS_CACHE__ENABLED": "false"}
    ),
    "null backend": StackOptions(processes=1, cache="null"),
    "memcache_pool": StackOptions(processes=1, cache="memcache_pool"),
}
"""How Keystone caches; `null backend` is its default, which caches in a request."""
INTRODUCTION: Final = """\
# What Keystone does for a token call

<!-- Made by docs/reference/generate_calls.py; run it again instead of editing. -->

Keystone {version}, one process, the small cloud of `keylag up`, its own MariaDB.
Each column is one call after {warm_up} of its kind, with OSProfiler's own points.
The cache calls and the second total are from the `Server-Timing` of the same call.

Counts carry over to other machines, times do not.
Following a call makes it slower: for each statement OSProfiler sends Redis two
messages, one of them within what it measures.

`null backend` is Keystone's default: it keeps things for the length of a request.
`SELECT 1`, by which connections used to be tested, is sent no more: the driver pings.
"""


@dataclass(frozen=True)
class Followed:
    """One call, as both saw it."""

    trace: Explanation
    timing: ServerTiming


def main() -> None:
    """Measure, and write the page."""
    with TemporaryDirectory() as folder:
        stack = Stack(
            Path(folder) / "stack", Tools.load(), prepared=CLOUD, console=Console()
        )
        try:
            stack.up()
            found = {way: _followed(stack, options) for way, options in WAYS.items()}
        finally:
            stack.down()
    PAGE.write_text(page(found), encoding="utf-8")


def _followed(stack: Stack, options: StackOptions) -> dict[str, Followed]:
    stack.restart("keystone", options=options)
    whom = keystone.found(stack, None, None, {})
    return {kind: _follow(whom, kind) for kind in CALLS}


def _follow(whom: keystone.Keystone, kind: str) -> Followed:
    for _ in range(WARM_UP):
        whom.send(kind, signed=False)
    sent = whom.send(kind)
    trace = analysis.of_trace(sources.read(whom.place, sent.trace_id))
    return Followed(trace, parse(sent.exchange.server_timing))


def page(found: Mapping[str, Mapping[str, Followed]]) -> str:
    """Return the page of what was found: by way to cache, by kind of call."""
    lines = [INTRODUCTION.format(version=keystone_version(), warm_up=WARM_UP)]
    for kind in CALLS:
        ways = {way: calls[kind] for way, calls in found.items()}
        lines += [f"## {kind}", "", *_table(["", *ways], _rows(list(ways.values())))]
        for way, one in ways.items():
            lines += ["", f"Statements that took longest, {way}:", ""]
            lines += _table(
                ("times", "ms", "slowest", "joins", "statement"), _slow(one)
            )
        lines.append("")
    return "\n".join(lines)


def _rows(ways: Sequence[Followed]) -> Iterator[list[str]]:
    """Give the rows of the table of one call; a column for each way to cache."""
    yield ["statements, ms", *(_counted(one.trace.sql) for one in ways)]
    kinds = sorted({kind for one in ways for kind in one.trace.kinds})
    for kind in kinds:
        yield [f"{kind}, ms", *(_counted(one.trace.kinds.get(kind)) for one in ways)]
    for joins, words in ((1, "one join"), (2, "two joins"), (3, "three or more")):
        yield [f"{words}, ms", *(_counted(one.trace.joins.get(joins)) for one in ways)]
    yield ["classes of statements", *(str(len(one.trace.statements)) for one in ways)]
    yield ["cache calls", *(str(one.timing.counts["cache_calls"]) for one in ways)]
    yield ["total by OSProfiler, ms", *(_ms(one.trace.total_seconds) for one in ways)]
    yield ["by Server-Timing, ms", *(_ms(one.timing.total_seconds) for one in ways)]
    yield ["apart", *(_apart(one) for one in ways)]


def _slow(one: Followed) -> Iterator[list[str]]:
    for found in one.trace.statements[:OUTLIERS]:
        text = shortened(found.of.fingerprint).replace("|", r"\|")
        yield [
            *(str(found.count), _ms(found.seconds), _ms(found.slowest)),
            *(str(found.of.joins), f"``{text}``"),
        ]


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _counted(counted: Counted | None) -> str:
    count, seconds = counted or (0, 0.0)
    return f"{count}, {_ms(seconds)}" if count else "0"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f}"


def _apart(one: Followed) -> str:
    whole = one.timing.total_seconds
    return f"{(whole - one.trace.total_seconds) / whole:.1%}"


if __name__ == "__main__":
    main()
