"""Facts of one call: of its Server-Timing header, or of its trace.

They hold what the call did, and no rate, so rules about rates and servers are unknown.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from keylag.diagnosis.facts import SERVED, Calls, Facts, Kind, Window
from keylag.diagnosis.prometheus import Sample
from keylag.errors import WrongUsageError
from keylag.phases import Cell
from keylag.server_timing import BadServerTimingError, parse_server_timing
from keylag.trace.analysis import (
    BACKEND,
    OSPROFILER_ONLY,
    explain_trace,
    walk_spans,
)
from keylag.trace.model import CACHE_LAYER, ERROR, STATEMENT, Span, Trace

KINDS: Final[Mapping[str, Kind]] = {
    "password": ("POST", "password"),
    "application-credential": ("POST", "application_credential"),
    "validate": ("GET", ""),
    "revoke": ("DELETE", ""),
}
"""Kinds of calls by the names of `keylag explain --call`."""
ISSUING: Final = ("authenticate", "issue")
"""Operations that only a log-in has."""
DIGITS: Final = 9
NANOSECOND: Final = 1e-9
"""A trace has no smaller unit."""
FIELD: Final = "server-timing:"
ONE_CALL: Final = (
    "One call is weak evidence: a slow moment looks like a cause. Costs are those of"
    " calls like it, one after the other; waits before Keystone are unknown."
)


def header_facts(text: str, call: str | None = None) -> Facts:
    """Return the facts of a Server-Timing header, alone or in a whole response.

    `call` is a key of KINDS; None guesses.  Raises WrongUsageError for other text.
    """
    fields = [line for line in text.splitlines() if line.lower().startswith(FIELD)]
    header = ",".join(line[len(FIELD) :] for line in fields) or text.strip()
    try:
        timing = parse_server_timing(header)
    except BadServerTimingError as error:
        message = (
            f"This is no breakdown of Keystone: {error}. Give the header's value, or"
            " pipe a whole response to --server-timing -. Keystone sends it with"
            " keylag-otel and KEYLAG_SERVER_TIMING=true."
        )
        raise WrongUsageError(message) from error
    return _facts(timing.cells, timing.counts, call)


def trace_facts(trace: Trace, call: str | None = None) -> Facts:
    """Return the facts of a trace.

    Raises WrongUsageError if it has only OSProfiler's own points, and TraceError if its
    statements cannot be classified.
    """
    found = explain_trace(trace)
    if OSPROFILER_ONLY in found.limitations:
        raise WrongUsageError(OSPROFILER_ONLY)
    spans = [span for root in trace.spans for span in walk_spans(root)]
    cache = [one for one in spans if one.attributes.get(CACHE_LAYER) == BACKEND]
    reads = [one for one in spans if _is_read(one)]
    whole = math.fsum(found.cells.values())
    answers = {
        "cache_call_buckets": _buckets(cache, whole),
        "cache_call_seconds": [_time(cache, whole)],
        "cache_errors": [
            Sample({}, sum(ERROR in one.attributes for one in cache) / whole)
        ],
        "sql_call_buckets": _buckets(reads, whole, keystone_sql_call="read"),
        "sql_call_seconds": [_time(reads, whole, keystone_sql_call="read")],
    }
    return _facts(found.cells, found.counts, call, answers, found.limitations)


def _facts(
    cells: Mapping[Cell, float],
    counts: Mapping[str, int],
    call: str | None,
    answers: Mapping[str, Sequence[Sample]] | None = None,
    limitations: Sequence[str] = (),
) -> Facts:
    seconds = math.fsum(cells.values())
    if not seconds:
        message = "The breakdown of this call is empty: its phases are missing."
        raise WrongUsageError(message)
    calls = Calls(
        kind=KINDS[call] if call else _guess(cells),
        outcome=SERVED,
        per_second=1 / seconds,
        cells=cells,
        statements=counts.get("sql_statements", 0),
        round_trips=counts.get("cache_calls", 0),
    )
    window = Window(0.0, seconds)
    return Facts(window, [calls], answers or {}, limitations=(ONE_CALL, *limitations))


def _guess(cells: Mapping[Cell, float]) -> Kind:
    operations = {operation for _, operation in cells}
    return KINDS["password" if operations.intersection(ISSUING) else "validate"]


def _is_read(span: Span) -> bool:
    return span.attributes.get(STATEMENT, "").lstrip().upper().startswith("SELECT")


def _buckets(spans: Iterable[Span], whole: float, **labels: str) -> list[Sample]:
    """Return cumulative buckets per second: two around each duration.

    So a quantile of few calls is one of their durations.
    """
    counts: dict[float, int] = {}
    count = 0
    for one in sorted(spans, key=_mean):
        seconds = _mean(one)
        counts.setdefault(round(seconds - NANOSECOND, DIGITS), count)
        count += one.calls
        counts[seconds] = count
    return [
        Sample({**labels, "le": str(seconds)}, number / whole)
        for seconds, number in counts.items()
    ]


def _mean(span: Span) -> float:
    """Return the duration of a call; a collapsed span has the mean of several."""
    return round(span.self_seconds / span.calls, DIGITS)


def _time(spans: Iterable[Span], whole: float, **labels: str) -> Sample:
    return Sample(labels, math.fsum(one.self_seconds for one in spans) / whole)
