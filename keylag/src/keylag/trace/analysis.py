"""From a trace, or from an answer's header, to an explanation of the call."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from keylag.phases import Cell
from keylag.server_timing import BadServerTimingError, ServerTiming, parse
from keylag.trace.exchange import Exchange
from keylag.trace.explanation import CacheCalls, Explanation, Repeated
from keylag.trace.model import (
    CACHE_LAYER,
    CACHE_RESULT,
    CUT,
    METHOD,
    PHASE,
    ROUTE,
    SERVICE,
    STATEMENT,
    Span,
    Trace,
)
from keylag.trace.statements import StatementClass, classes_of

OSPROFILER_ALONE: Final = (
    "The trace has OSProfiler's own points alone: the request, and its statements "
    "while the database executes them. Cache, revocation check, password hash, token "
    "crypto and ORM are within 'other', as are connecting, fetching and committing. "
    "With keylag-otel in Keystone they are told apart."
)
WAS_CUT: Final = (
    "The call did more than keylag-otel writes down of one: what came after is in no "
    "span, and its time is in the last ones around it."
)
NO_ORM: Final = (
    "The trace has no spans of the ORM: that, rendering, policy and whatever a miss of "
    "the cache computes are within 'other'. Server-Timing and OpenTelemetry's spans "
    "tell them apart."
)
SERVER_TIMING: Final = "Server-Timing"
CLIENT: Final = "the client"
ORM: Final = "orm"
BACKEND: Final = "backend"
"""The layer of the cache whose calls are round trips."""
NO_STATEMENTS: Final = (
    "Server-Timing tells of no single statement; `keylag trace` does."
)


def of_trace(trace: Trace) -> Explanation:
    """Explain a trace; raises TraceError if its statements cannot be classed."""
    spans = [span for root in trace.spans for span in walked(root)]
    texts = [s.attributes[STATEMENT] for s in spans if STATEMENT in s.attributes]
    classes = classes_of(texts)
    repeated, cache = _repeated(spans, classes), _cache(spans)
    phases = {span.attributes.get(PHASE) for span in spans}
    return Explanation(
        call=_call(spans),
        source=trace.source,
        total_seconds=math.fsum(root.seconds for root in trace.spans),
        cells=_cells(spans, whole=ORM in phases),
        counts={
            "sql_statements": sum(one.count for one in repeated),
            **({} if phases == {None} else {"cache_calls": _asked(cache)}),
        },
        statements=repeated,
        classes=classes,
        cache=cache,
        trace=trace,
        missing=_missing(spans, phases),
    )


def of_server_timing(call: str, timing: ServerTiming) -> Explanation:
    """Explain a call by the header of its answer."""
    return Explanation(
        call=call,
        source=SERVER_TIMING,
        total_seconds=timing.total_seconds,
        cells=timing.cells,
        counts=timing.counts,
        missing=(NO_STATEMENTS,),
    )


def joined(found: Explanation, exchange: Exchange) -> Explanation:
    """Put into a trace's explanation what the answer to the same call tells.

    That is how long it took, and, where the trace has not all of them, its parts.
    """
    totals = {found.source: found.total_seconds}
    try:
        timing = parse(exchange.server_timing)
        totals[SERVER_TIMING] = timing.total_seconds
    except BadServerTimingError:  # most Keystones do not send it
        timing = None
    found = replace(found, totals={**totals, CLIENT: exchange.total_seconds})
    if timing is None or not found.missing:
        return found
    return replace(
        found,
        source=f"{found.source} and {SERVER_TIMING}",
        total_seconds=timing.total_seconds,
        cells=timing.cells,
        counts=timing.counts,
        missing=(),
    )


def _missing(spans: Iterable[Span], phases: set[str | None]) -> tuple[str, ...]:
    """Say what a trace whose spans name these phases cannot tell."""
    if phases == {None}:
        return (OSPROFILER_ALONE,)
    if any(CUT in span.attributes for span in spans):
        return (WAS_CUT,)
    return () if ORM in phases else (NO_ORM,)


def walked(span: Span) -> Iterator[Span]:
    """Give a span and all below it, in the order they began."""
    yield span
    for child in span.children:
        yield from walked(child)


def _call(spans: Iterable[Span]) -> str:
    """Name the first request that the trace has: by its route, or by who serves it."""
    for span in spans:
        found = span.attributes
        if METHOD in found or ROUTE in found:
            words = found.get(METHOD, ""), found.get(ROUTE, found.get(SERVICE, ""))
            return " ".join(words).strip()
    return next(span.name for span in spans)


def _cells(spans: Iterable[Span], *, whole: bool) -> Mapping[Cell, float]:
    """Sum the self times up.

    In a trace that is not whole, a span with others in it is mostly what has none.
    """
    cells: dict[Cell, float] = defaultdict(float)
    for span in spans:
        phase, operation = span.cell
        if span.children and not whole:
            phase = "other"
        cells[phase, operation] += span.self_seconds
    return cells


def _repeated(
    spans: Iterable[Span], classes: Mapping[str, StatementClass]
) -> list[Repeated]:
    alike: dict[StatementClass, list[Span]] = defaultdict(list)
    for span in spans:
        if STATEMENT in span.attributes:
            alike[classes[span.attributes[STATEMENT]]].append(span)
    found = [
        Repeated(
            of=one,
            count=sum(span.calls for span in group),
            seconds=math.fsum(span.seconds for span in group),
            slowest=max(span.seconds / span.calls for span in group),
        )
        for one, group in alike.items()
    ]
    return sorted(found, key=lambda one: -one.seconds)


def _asked(cache: Iterable[CacheCalls]) -> int:
    """Return how many calls went to the cache's server."""
    return sum(one.count for one in cache if one.layer == BACKEND)


def _cache(spans: Iterable[Span]) -> list[CacheCalls]:
    alike: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for span in spans:
        if CACHE_LAYER in span.attributes:
            result = span.attributes.get(CACHE_RESULT, "")
            alike[span.attributes[CACHE_LAYER], result].append(span)
    return [
        CacheCalls(
            layer,
            result,
            count=sum(span.calls for span in group),
            seconds=math.fsum(span.self_seconds for span in group),
        )
        for (layer, result), group in alike.items()
    ]
