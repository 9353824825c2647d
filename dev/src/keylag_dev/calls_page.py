"""Generates docs/reference/calls.md: database and cache work of each token call.

    python -m keylag_dev.calls_page

For each cache configuration it starts a stack and traces one call of each kind, which
takes some minutes.  The tables are those of OpenStack's "Keystone DB / cache operations
analysis" (performance-docs, 2016).
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

from keylag.demo import SAMPLE_CLOUD
from keylag.paths import CHECKOUT
from keylag.phases import CATEGORY_NAMES
from keylag.sample_cloud import connect
from keylag.server_timing import parse_server_timing
from keylag.services.otel_collector import traces_file
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools
from keylag.tools.venvs import keystone_version
from keylag.trace import analysis, keystone_access, sources
from keylag.trace.calls import CALLS
from keylag.trace.explanation import CountAndSeconds, Explanation
from keylag.trace.span_rows import span_rows

PAGE: Final = CHECKOUT / "docs" / "reference" / "calls.md"
WARM_UP_CALLS: Final = 3
"""Calls of a kind before the one that is traced."""
STATEMENTS_SHOWN: Final = 5
MIN_SHARE: Final = 0.02
"""Smallest share of a service's call for a line of its tree."""
EXPORT_SECONDS: Final = 5
"""Time in which service and Keystone export their spans, once a second."""
SERVICE: Final = ("service",)
NO_CACHE: Final = "cache disabled"
CACHE_CONFIGURATIONS: Final[Mapping[str, StackOptions]] = {
    NO_CACHE: StackOptions(
        processes=1, environment={"OS_CACHE__ENABLED": "false"}, extras=SERVICE
    ),
    "null backend": StackOptions(processes=1, cache="null", extras=SERVICE),
    "memcache_pool": StackOptions(processes=1, cache="memcache_pool", extras=SERVICE),
}
"""Keystone's cache; `null backend` is the default, which caches within a request."""
INTRODUCTION: Final = """\
# What Keystone does for a token call

<!-- Made by `python -m keylag_dev.calls_page`; run it again instead of editing. -->

Keystone {version} with one process, the sample cloud of `keylag up`, and MariaDB.
One run on one machine: each column is one call after {warm_up} warm-up calls of its
kind. The data comes from OSProfiler's trace in Redis, which includes Keylag's points.

Counts are the same on other machines; times differ.

`null backend` is Keystone's default: it caches only within a request.
Keystone tests connections with a ping of the driver, no longer with `SELECT 1`.

Three sources measure each call: OSProfiler's trace, OpenTelemetry's spans in the
Collector's file, and the `Server-Timing` header, which ends where the response starts.
`spread` is the difference between the longest and the shortest total, relative to the
longest. None of them includes the messages to Redis, which follow the request.
"""
SOURCES_SECTION: Final = f"""\
## One validation, {NO_CACHE}, by three sources

OSProfiler starts and stops the point of a statement in SQLAlchemy's event handlers.
Its SQL time therefore includes a little ORM time.
"""
SERVICE_SECTION: Final = """\
## One call of a service

`keylag up --with service` with an empty cache. The service discovers Keystone, gets its
own token, and validates the caller's. Calls shorter than {least:.0%} are left out.
"""


@dataclass(frozen=True)
class MeasuredCall:
    """One call as three sources measured it."""

    trace: Explanation
    spans: Explanation
    header: Explanation

    @property
    def by_source(self) -> Mapping[str, Explanation]:
        """The explanations by name of the source."""
        return {
            "OSProfiler": self.trace,
            "OpenTelemetry": self.spans,
            "Server-Timing": self.header,
        }


def main() -> None:
    """Measure all calls and write the page."""
    with TemporaryDirectory() as folder:
        place, tools = Path(folder) / "stack", Tools.load()
        stack = Stack(
            place,
            tools,
            CACHE_CONFIGURATIONS[NO_CACHE],
            initial_data=SAMPLE_CLOUD,
            console=Console(),
        )
        with stack:
            found = {
                way: _measure_calls(stack, options)
                for way, options in CACHE_CONFIGURATIONS.items()
            }
            through = _explain_service_call(stack)
    PAGE.write_text(page(found, through), encoding="utf-8")


def _explain_service_call(stack: Stack) -> Explanation:
    trace_id = token_hex(16)
    token = connect(stack.admin()).auth_token
    traceparent = f"00-{trace_id}-{token_hex(8)}-01"
    headers = {"X-Auth-Token": token, "traceparent": traceparent}
    requests.get(stack.url("service"), headers=headers, timeout=60).raise_for_status()
    time.sleep(EXPORT_SECONDS)
    return analysis.explain_trace(
        sources.read_trace(str(traces_file(stack.folder)), trace_id)
    )


def _measure_calls(stack: Stack, options: StackOptions) -> dict[str, MeasuredCall]:
    stack.restart("keystone", options=options)
    access = keystone_access.find_keystone(stack, None, None, {})
    return {kind: _measure_call(stack, access, kind) for kind in CALLS}


def _measure_call(
    stack: Stack, access: keystone_access.KeystoneAccess, kind: str
) -> MeasuredCall:
    for _ in range(WARM_UP_CALLS):
        access.send(kind, signed=False)
    sent = access.send(kind)
    places = access.location, str(traces_file(stack.folder))
    trace, spans = (sources.read_complete(place, sent.trace_id) for place in places)
    timing = parse_server_timing(sent.exchange.server_timing)
    return MeasuredCall(
        analysis.explain_trace(trace),
        analysis.explain_trace(spans),
        analysis.explain_server_timing(sent.exchange.call, timing),
    )


def page(found: Mapping[str, Mapping[str, MeasuredCall]], through: Explanation) -> str:
    """Return the page; `found` is by cache configuration and kind of call."""
    lines = [INTRODUCTION.format(version=keystone_version(), warm_up=WARM_UP_CALLS)]
    for kind in CALLS:
        ways = {way: calls[kind] for way, calls in found.items()}
        lines += [
            f"## {kind}",
            "",
            *_table(["", *ways], _call_rows(list(ways.values()))),
        ]
        for way, one in ways.items():
            if one.trace.statements:
                lines += ["", f"Slowest statements, {way}:", ""]
                lines += _table(
                    ("times", "ms", "slowest", "joins", "statement"),
                    _slowest_statements(one),
                )
        lines.append("")
    by_source = found[NO_CACHE]["validate"].by_source
    lines += [SOURCES_SECTION, *_table(["", *by_source], _source_rows(by_source)), ""]
    lines += [
        SERVICE_SECTION.format(least=MIN_SHARE),
        "```text",
        *_tree_lines(through),
        "```",
        "",
    ]
    return "\n".join(lines)


def _call_rows(ways: Sequence[MeasuredCall]) -> Iterator[list[str]]:
    yield ["statements, ms", *(_format_count(one.trace.sql) for one in ways)]
    kinds = sorted({kind for one in ways for kind in one.trace.kinds})
    for kind in kinds:
        yield [
            f"{kind}, ms",
            *(_format_count(one.trace.kinds.get(kind)) for one in ways),
        ]
    for joins, words in ((1, "one join"), (2, "two joins"), (3, "three or more")):
        yield [
            f"{words}, ms",
            *(_format_count(one.trace.joins.get(joins)) for one in ways),
        ]
    yield ["classes of statements", *(str(len(one.trace.statements)) for one in ways)]
    yield ["cache calls", *(str(one.header.counts["cache_calls"]) for one in ways)]
    for who in ways[0].by_source:
        yield [
            f"total by {who}, ms",
            *(_format_ms(one.by_source[who].total_seconds) for one in ways),
        ]
    yield ["spread", *(_relative_spread(one) for one in ways)]


def _source_rows(by_source: Mapping[str, Explanation]) -> Iterator[list[str]]:
    for category, words in CATEGORY_NAMES.items():
        yield [
            f"{words}, ms",
            *(_format_ms(one.categories[category]) for one in by_source.values()),
        ]
    yield ["total, ms", *(_format_ms(one.total_seconds) for one in by_source.values())]
    yield [
        "statements",
        *(str(one.counts["sql_statements"]) for one in by_source.values()),
    ]


def _tree_lines(found: Explanation) -> Iterator[str]:
    yield "      ms  times"
    for row in span_rows(found):
        if row.seconds >= MIN_SHARE * found.total_seconds:
            times = row.count if row.count > 1 else ""
            label = "  " * row.depth + row.label
            yield f"{_format_ms(row.seconds):>8}  {times:>5}  {label}"


def _slowest_statements(one: MeasuredCall) -> Iterator[list[str]]:
    for found in one.trace.statements[:STATEMENTS_SHOWN]:
        text = found.statement_class.statement.replace("|", r"\|")
        yield [
            *(
                str(found.count),
                _format_ms(found.seconds),
                _format_ms(found.slowest_seconds),
            ),
            *(str(found.statement_class.joins), f"``{text}``"),
        ]


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _format_count(counted: CountAndSeconds | None) -> str:
    count, seconds = counted or (0, 0.0)
    return f"{count}, {_format_ms(seconds)}" if count else "0"


def _format_ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f}"


def _relative_spread(one: MeasuredCall) -> str:
    totals = [found.total_seconds for found in one.by_source.values()]
    return f"{(max(totals) - min(totals)) / max(totals):.2%}"


if __name__ == "__main__":
    main()
