"""Write docs/reference/calls.md: what today's Keystone does for each token call.

    python -m keylag_dev.calls_page

It starts a stack of its own, once for each way to cache, has one call of each kind
followed, and takes some minutes.  The tables are those of OpenStack's "Keystone DB /
cache operations analysis" (performance-docs, 2016).
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Final

import requests
from rich.console import Console

from keylag.cloud import connect
from keylag.demo import CLOUD
from keylag.phases import CATEGORY_NAMES
from keylag.server_timing import parse
from keylag.services.otel_collector import traces_file
from keylag.stack import Stack, StackOptions
from keylag.state import CHECKOUT
from keylag.tools import Tools
from keylag.tools.venvs import keystone_version
from keylag.trace import analysis, keystone, sources
from keylag.trace.calls import CALLS
from keylag.trace.explanation import Counted, Explanation
from keylag.trace.rows import rows, shortened

PAGE: Final = CHECKOUT / "docs" / "reference" / "calls.md"
WARM_UP: Final = 3
"""Calls of a kind before the one that is followed."""
OUTLIERS: Final = 5
LEAST: Final = 0.02
"""Share of a service's call that a line of its tree stands for."""
EXPORTED_SECONDS: Final = 5
"""Until both the service and Keystone have sent their spans, once a second."""
SERVICE: Final = ("service",)
OFF: Final = "cache disabled"
WAYS: Final[Mapping[str, StackOptions]] = {
    OFF: StackOptions(
        processes=1, environment={"OS_CACHE__ENABLED": "false"}, extras=SERVICE
    ),
    "null backend": StackOptions(processes=1, cache="null", extras=SERVICE),
    "memcache_pool": StackOptions(processes=1, cache="memcache_pool", extras=SERVICE),
}
"""How Keystone caches; `null backend` is its default, which caches in a request."""
INTRODUCTION: Final = """\
# What Keystone does for a token call

<!-- Made by `python -m keylag_dev.calls_page`; run it again instead of editing. -->

Keystone {version}, one process, the small cloud of `keylag up`, its own MariaDB.
One run on one machine: each column is one call after {warm_up} of its kind, read from
OSProfiler's trace in Redis, which has Keylag's points too.

Counts carry over to other machines, times do not.

`null backend` is Keystone's default: it keeps things for the length of a request.
`SELECT 1`, by which connections used to be tested, is sent no more: the driver pings.

Three have measured each call: OSProfiler's trace, OpenTelemetry's spans in the
Collector's file, and the `Server-Timing` of the answer, which ends where the answer
begins. `apart` is the longest total without the shortest, as a share of it.
The messages to Redis are sent when the request is over and are in none of them.
"""
THREE: Final = f"""\
## One validation, {OFF}, told by three

OSProfiler's point of a statement begins and ends in SQLAlchemy's event handlers, so a
little of the ORM's time is SQL's there.
"""
THROUGH: Final = """\
## One call of a service

`keylag up --with service`, the cache empty: its first call asks Keystone where it is,
for a token of its own, and about the caller's.
What takes less than {least:.0%} is left out.
"""


@dataclass(frozen=True)
class Followed:
    """One call, as each of three saw it."""

    trace: Explanation
    spans: Explanation
    header: Explanation

    @property
    def by(self) -> Mapping[str, Explanation]:
        """All three, by who has told it."""
        return {
            "OSProfiler": self.trace,
            "OpenTelemetry": self.spans,
            "Server-Timing": self.header,
        }


def main() -> None:
    """Measure, and write the page."""
    with TemporaryDirectory() as folder:
        place, tools = Path(folder) / "stack", Tools.load()
        stack = Stack(place, tools, WAYS[OFF], prepared=CLOUD, console=Console())
        with stack:
            found = {way: _followed(stack, options) for way, options in WAYS.items()}
            through = _through_the_service(stack)
    PAGE.write_text(page(found, through), encoding="utf-8")


def _through_the_service(stack: Stack) -> Explanation:
    trace_id = token_hex(16)
    token = connect(stack.admin()).auth_token
    traceparent = f"00-{trace_id}-{token_hex(8)}-01"
    headers = {"X-Auth-Token": token, "traceparent": traceparent}
    requests.get(stack.url("service"), headers=headers, timeout=60).raise_for_status()
    time.sleep(EXPORTED_SECONDS)
    return analysis.of_trace(sources.read(str(traces_file(stack.folder)), trace_id))


def _followed(stack: Stack, options: StackOptions) -> dict[str, Followed]:
    stack.restart("keystone", options=options)
    whom = keystone.found(stack, None, None, {})
    return {kind: _follow(stack, whom, kind) for kind in CALLS}


def _follow(stack: Stack, whom: keystone.Keystone, kind: str) -> Followed:
    for _ in range(WARM_UP):
        whom.send(kind, signed=False)
    sent = whom.send(kind)
    places = whom.place, str(traces_file(stack.folder))
    trace, spans = (sources.read_whole(place, sent.trace_id) for place in places)
    timing = parse(sent.exchange.server_timing)
    return Followed(
        analysis.of_trace(trace),
        analysis.of_trace(spans),
        analysis.of_server_timing(sent.exchange.call, timing),
    )


def page(found: Mapping[str, Mapping[str, Followed]], through: Explanation) -> str:
    """Return the page of what was found: by way to cache, by kind of call."""
    lines = [INTRODUCTION.format(version=keystone_version(), warm_up=WARM_UP)]
    for kind in CALLS:
        ways = {way: calls[kind] for way, calls in found.items()}
        lines += [f"## {kind}", "", *_table(["", *ways], _rows(list(ways.values())))]
        for way, one in ways.items():
            if one.trace.statements:
                lines += ["", f"Statements that took longest, {way}:", ""]
                lines += _table(
                    ("times", "ms", "slowest", "joins", "statement"), _slow(one)
                )
        lines.append("")
    told = found[OFF]["validate"].by
    lines += [THREE, *_table(["", *told], _told(told)), ""]
    lines += [THROUGH.format(least=LEAST), "```text", *_tree(through), "```", ""]
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
    yield ["cache calls", *(str(one.header.counts["cache_calls"]) for one in ways)]
    for who in ways[0].by:
        yield [f"total by {who}, ms", *(_ms(one.by[who].total_seconds) for one in ways)]
    yield ["apart", *(_apart(one) for one in ways)]


def _told(by: Mapping[str, Explanation]) -> Iterator[list[str]]:
    """Give the rows of one call's table; a column for each who has told it."""
    for category, words in CATEGORY_NAMES.items():
        yield [f"{words}, ms", *(_ms(one.categories[category]) for one in by.values())]
    yield ["total, ms", *(_ms(one.total_seconds) for one in by.values())]
    yield ["statements", *(str(one.counts["sql_statements"]) for one in by.values())]


def _tree(found: Explanation) -> Iterator[str]:
    """Give the lines of a trace, indented."""
    yield "      ms  times"
    for row in rows(found):
        if row.seconds >= LEAST * found.total_seconds:
            times = row.count if row.count > 1 else ""
            yield f"{_ms(row.seconds):>8}  {times:>5}  {'  ' * row.depth}{row.label}"


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
    totals = [found.total_seconds for found in one.by.values()]
    return f"{(max(totals) - min(totals)) / max(totals):.2%}"


if __name__ == "__main__":
    main()
