"""The breakdown of each call, computed from JMeter's samples.

Shares and means cover successful requests with a Server-Timing header.  Failed
requests are counted, and their times are left out.

Quantiles are linear interpolations between order statistics, type 7 of
Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996): the default
of NumPy and R.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict

from keylag.jtl import Sample
from keylag.phases import (
    CATEGORIES,
    OPERATIONS,
    PHASES,
    Cell,
    category_of,
    sort_known_first,
)
from keylag.server_timing import ServerTiming

QUANTILE_METHOD: Final = "linear interpolation (Hyndman and Fan type 7)"

Statistics = dict[str, float]
"""Statistics by name (`mean`, `p50`, ...); times in seconds, shares from 0 to 1."""


class Call(TypedDict):
    """One kind of request in one run; values without measurements are empty or None."""

    method: str
    route: str
    auth_method: str | None
    requests: int
    """All requests, including failed, refused and unmeasured ones."""
    errors: int
    failures: dict[str, int]
    """Failed requests by code and message; the most frequent first."""
    refused: int
    """Requests with an expected 4xx response; their times are left out."""
    unmeasured: int
    """Responses without a valid Server-Timing header."""
    client_seconds: Statistics | None
    wall_seconds: Statistics | None
    categories: dict[str, Statistics]
    phases: dict[str, Statistics]
    operations: dict[str, Statistics]
    cells: dict[str, Statistics]
    sql_statements: Statistics | None
    cache_calls: Statistics | None


class Breakdown(TypedDict):
    """The calls of one run, without its `setup_requests`."""

    calls: list[Call]
    setup_requests: int
    quantiles: str
    warnings: list[str]
    environment: dict[str, Any]


class Run(Breakdown):
    """A breakdown with a name, for comparison with others."""

    name: str
    sql_sides: dict[str, dict[str, float]]
    """Totals of `keylag.sql_comparison` by method; empty if they were not measured."""


def name_run(name: str, breakdown: Breakdown) -> Run:
    """Return a breakdown with a name."""
    return Run(name=name, sql_sides={}, **breakdown)


def compute_breakdown(
    samples: Iterable[Sample],
    environment: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
) -> Breakdown:
    """Return the breakdown of one run; calls are in the order of their first sample.

    `environment` and `warnings` become part of the result.
    """
    groups: dict[tuple[str, str, str | None], list[Sample]] = defaultdict(list)
    setup_requests = 0
    for sample in samples:
        if sample.is_setup:
            setup_requests += 1
        else:
            groups[parse_label(sample.label)].append(sample)
    calls = [_summarize_call(key, group) for key, group in groups.items()]
    return Breakdown(
        calls=calls,
        setup_requests=setup_requests,
        quantiles=QUANTILE_METHOD,
        warnings=[*warnings, *_consistency_warnings(groups)],
        environment=dict(environment or {}),
    )


def parse_label(label: str) -> tuple[str, str, str | None]:
    """Split a sampler's label into method, route and authentication method."""
    method, route, auth_method = [*label.split(" ", 2), "", ""][:3]
    return method, route, auth_method or None


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the type 7 quantile of sorted values; needs at least one value."""
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    above = math.ceil(position)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


_STATISTICS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "mean": lambda ordered: math.fsum(ordered) / len(ordered),
    "p50": lambda ordered: quantile(ordered, 0.50),
    "p95": lambda ordered: quantile(ordered, 0.95),
    "p99": lambda ordered: quantile(ordered, 0.99),
    "max": lambda ordered: ordered[-1],
    "min": lambda ordered: ordered[0],
}

_MEAN_AND_QUANTILES: Final = ("mean", "p50", "p95")
_MEAN_ONLY: Final = ("mean",)


def _statistics(values: Iterable[float], *wanted: str) -> Statistics | None:
    ordered = sorted(values)
    if not ordered:
        return None
    return {name: _STATISTICS[name](ordered) for name in wanted}


def _summarize_call(key: tuple[str, str, str | None], samples: list[Sample]) -> Call:
    answered = [sample for sample in samples if sample.success and not sample.refused]
    timings = [sample.timing for sample in answered if sample.timing]
    method, route, auth_method = key
    return Call(
        method=method,
        route=route,
        auth_method=auth_method,
        requests=len(samples),
        errors=sum(not sample.success for sample in samples),
        failures=_count_failures(samples),
        refused=sum(sample.refused for sample in samples),
        unmeasured=len(answered) - len(timings),
        client_seconds=_statistics(
            (sample.elapsed_seconds for sample in answered), *_STATISTICS
        ),
        wall_seconds=_statistics(
            (timing.total_seconds for timing in timings), "mean", "p50", "p95", "p99"
        ),
        categories=_part_statistics(
            timings, category_of, _MEAN_AND_QUANTILES, CATEGORIES, always=True
        ),
        phases=_part_statistics(
            timings, lambda cell: cell[0], _MEAN_AND_QUANTILES, PHASES
        ),
        operations=_part_statistics(
            timings, lambda cell: cell[1], _MEAN_ONLY, OPERATIONS
        ),
        cells=_part_statistics(timings, ".".join, _MEAN_ONLY, ()),
        sql_statements=_count_statistics(timings, "sql_statements"),
        cache_calls=_count_statistics(timings, "cache_calls"),
    )


def _count_failures(samples: Iterable[Sample]) -> dict[str, int]:
    failed = (f"{one.code} {one.message}" for one in samples if not one.success)
    return dict(Counter(failed).most_common())


def _count_statistics(timings: Sequence[ServerTiming], name: str) -> Statistics | None:
    values = (timing.counts[name] for timing in timings if name in timing.counts)
    return _statistics(values, "mean", "p95")


def _part_statistics(
    timings: Sequence[ServerTiming],
    part_of: Callable[[Cell], str],
    wanted: Sequence[str],
    known: tuple[str, ...],
    *,
    always: bool = False,
) -> dict[str, Statistics]:
    """Return the statistics of each part; a part that a request lacks counts as 0."""
    if not timings:
        return {}
    sums = [_sum_cells(timing.cells, part_of) for timing in timings]
    wall = math.fsum(timing.total_seconds for timing in timings)
    found: set[str] = set().union(*sums, known if always else ())
    result = {}
    for part in sort_known_first(found, known):
        values = [one.get(part, 0.0) for one in sums]
        share = math.fsum(values) / wall if wall else 0.0
        result[part] = {**(_statistics(values, *wanted) or {}), "share": share}
    return result


def _sum_cells(
    cells: Mapping[Cell, float], part_of: Callable[[Cell], str]
) -> Statistics:
    sums: Statistics = defaultdict(float)
    for cell, seconds in cells.items():
        sums[part_of(cell)] += seconds
    return sums


def _consistency_warnings(
    groups: Mapping[tuple[str, str, str | None], list[Sample]],
) -> list[str]:
    timings = [
        sample.timing for group in groups.values() for sample in group if sample.timing
    ]
    inconsistent = sum(not timing.adds_up() for timing in timings)
    if not inconsistent:
        return []
    message = (
        f"In {inconsistent} of {len(timings)} samples the parts do not add up to the "
        "total. Report this defect of the instrumentation."
    )
    return [message]


def throughput_per_second(samples: Sequence[Sample]) -> float | None:
    """Return requests per second from the first start to the last end.

    Set-up requests do not count.  Returns None for fewer than two requests.
    """
    load = [sample for sample in samples if not sample.is_setup]
    if len(load) <= 1:
        return None
    first = min(sample.start_seconds for sample in load)
    last = max(sample.start_seconds + sample.elapsed_seconds for sample in load)
    return len(load) / (last - first) if last > first else None
