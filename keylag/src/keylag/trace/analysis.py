"""Explains a call from its trace, or from the Server-Timing header of its response."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from keylag.phases import Cell
from keylag.server_timing import BadServerTimingError, ServerTiming, parse_server_timing
from keylag.trace.explanation import CacheCalls, Explanation, StatementSummary
from keylag.trace.http_exchange import HttpExchange
from keylag.trace.model import (
    CACHE_LAYER,
    CACHE_RESULT,
    METHOD,
    PHASE,
    ROUTE,
    SERVICE,
    STATEMENT,
    TRUNCATED,
    Span,
    Trace,
)
from keylag.trace.statements import StatementClass, classify_statements

OSPROFILER_ONLY: Final = (
    "The trace has only OSProfiler's own points: the request, and the execution of "
    "its statements. 'other' includes cache, revocation check, password hash, token "
    "crypto and ORM, and also connecting, fetching and committing. To see them "
    "separately, run Keystone with keylag-otel."
)
TRUNCATED_TRACE: Final = (
    "The trace is truncated: the call has more events than keylag-otel records. Later "
    "events have no span; their time counts for the spans around them."
)
NO_ORM: Final = (
    "The trace has no ORM spans: 'other' includes ORM, rendering, policy, and the "
    "computation after a cache miss. Server-Timing and OpenTelemetry's spans show them "
    "separately."
)
SERVER_TIMING: Final = "Server-Timing"
CLIENT: Final = "the client"
ORM: Final = "orm"
BACKEND: Final = "backend"
"""The cache layer whose calls are round trips."""
NO_STATEMENTS: Final = (
    "Server-Timing has no single statements; `keylag trace` shows them."
)


def explain_trace(trace: Trace) -> Explanation:
    """Explain a trace; raises TraceError if its statements cannot be classified."""
    spans = [span for root in trace.spans for span in walk_spans(root)]
    texts = [s.attributes[STATEMENT] for s in spans if STATEMENT in s.attributes]
    classes = classify_statements(texts)
    statements, cache = _statement_summaries(spans, classes), _cache_calls(spans)
    phases = {span.attributes.get(PHASE) for span in spans}
    return Explanation(
        call=_request_name(spans),
        source=trace.source,
        total_seconds=math.fsum(root.seconds for root in trace.spans),
        cells=_sum_self_times(spans, has_orm=ORM in phases),
        counts={
            "sql_statements": sum(one.count for one in statements),
            **({} if phases == {None} else {"cache_calls": _backend_calls(cache)}),
        },
        statements=statements,
        classes=classes,
        cache=cache,
        trace=trace,
        limitations=_limitations(spans, phases),
    )


def explain_server_timing(call: str, timing: ServerTiming) -> Explanation:
    """Explain a call by the Server-Timing header of its response."""
    return Explanation(
        call=call,
        source=SERVER_TIMING,
        total_seconds=timing.total_seconds,
        cells=timing.cells,
        counts=timing.counts,
        limitations=(NO_STATEMENTS,),
    )


def add_client_view(explanation: Explanation, exchange: HttpExchange) -> Explanation:
    """Add the client's measurement of the same call to the explanation of its trace.

    If the trace has limitations, the cells of the Server-Timing header replace its own.
    """
    totals = {explanation.source: explanation.total_seconds}
    try:
        timing = parse_server_timing(exchange.server_timing)
        totals[SERVER_TIMING] = timing.total_seconds
    except BadServerTimingError:  # the header is optional
        timing = None
    explanation = replace(
        explanation, totals_by_source={**totals, CLIENT: exchange.total_seconds}
    )
    if timing is None or not explanation.limitations:
        return explanation
    return replace(
        explanation,
        source=f"{explanation.source} and {SERVER_TIMING}",
        total_seconds=timing.total_seconds,
        cells=timing.cells,
        counts=timing.counts,
        limitations=(),
    )


def _limitations(spans: Iterable[Span], phases: set[str | None]) -> tuple[str, ...]:
    if phases == {None}:
        return (OSPROFILER_ONLY,)
    if any(TRUNCATED in span.attributes for span in spans):
        return (TRUNCATED_TRACE,)
    return () if ORM in phases else (NO_ORM,)


def walk_spans(span: Span) -> Iterator[Span]:
    """Yield a span and all its descendants, parents first."""
    yield span
    for child in span.children:
        yield from walk_spans(child)


def _request_name(spans: Iterable[Span]) -> str:
    # The first request is the outermost one.
    for span in spans:
        attributes = span.attributes
        if METHOD in attributes or ROUTE in attributes:
            route = attributes.get(ROUTE, attributes.get(SERVICE, ""))
            return f"{attributes.get(METHOD, '')} {route}".strip()
    return next(span.name for span in spans)


def _sum_self_times(spans: Iterable[Span], *, has_orm: bool) -> Mapping[Cell, float]:
    # Without ORM spans, most self time of a parent is time that lacks its own span.
    cells: dict[Cell, float] = defaultdict(float)
    for span in spans:
        phase, operation = span.cell
        if span.children and not has_orm:
            phase = "other"
        cells[phase, operation] += span.self_seconds
    return cells


def _statement_summaries(
    spans: Iterable[Span], classes: Mapping[str, StatementClass]
) -> list[StatementSummary]:
    groups: dict[StatementClass, list[Span]] = defaultdict(list)
    for span in spans:
        if STATEMENT in span.attributes:
            groups[classes[span.attributes[STATEMENT]]].append(span)
    summaries = [
        StatementSummary(
            statement_class=statement_class,
            count=sum(span.calls for span in group),
            seconds=math.fsum(span.seconds for span in group),
            slowest_seconds=max(span.seconds / span.calls for span in group),
        )
        for statement_class, group in groups.items()
    ]
    return sorted(summaries, key=lambda one: -one.seconds)


def _backend_calls(cache: Iterable[CacheCalls]) -> int:
    return sum(one.count for one in cache if one.layer == BACKEND)


def _cache_calls(spans: Iterable[Span]) -> list[CacheCalls]:
    groups: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for span in spans:
        if CACHE_LAYER in span.attributes:
            result = span.attributes.get(CACHE_RESULT, "")
            groups[span.attributes[CACHE_LAYER], result].append(span)
    return [
        CacheCalls(
            layer,
            result,
            count=sum(span.calls for span in group),
            seconds=math.fsum(span.self_seconds for span in group),
        )
        for (layer, result), group in groups.items()
    ]
