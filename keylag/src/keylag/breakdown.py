"""From samples to the break-down of each call: where its time went.

Shares and means are of the requests that were answered as asked and that
carried Keystone's own measurement.  Failed requests are counted, their time is
mixed into nothing.

Quantiles are linear interpolations between order statistics, type 7 of
Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996): the default
of NumPy and R.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict

from keylag.jtl import Sample
from keylag.phases import CATEGORIES, OPERATIONS, PHASES, Cell, category_of, in_order
from keylag.server_timing import ServerTiming

QUANTILE_METHOD: Final = "linear interpolation (Hyndman and Fan type 7)"

Numbers = dict[str, float]
"""Statistics by name (`mean`, `p50`, ...); times in seconds, shares from 0 to 1."""


class Call(TypedDict):
    """One kind of request in one run; empty or None where nothing was measured."""

    method: str
    route: str
    auth_method: str | None
    requests: int
    """All that were sent, the failed, refused and unmeasured ones too."""
    errors: int
    failures: dict[str, int]
    """The failed ones by their answer, code and message; the most frequent first."""
    refused: int
    """Answered with a 4xx that was the right answer; their time is left out."""
    unmeasured: int
    """Answered without a Server-Timing that could be read."""
    client_seconds: Numbers | None
    wall_seconds: Numbers | None
    categories: dict[str, Numbers]
    phases: dict[str, Numbers]
    operations: dict[str, Numbers]
    cells: dict[str, Numbers]
    sql_statements: Numbers | None
    cache_calls: Numbers | None


class Breakdown(TypedDict):
    """What a run says; `setup_requests` are left out of the calls."""

    calls: list[Call]
    setup_requests: int
    quantiles: str
    warnings: list[str]
    environment: dict[str, Any]


class Run(Breakdown):
    """A break-down with the name it has beside others."""

    name: str
    sql_sides: dict[str, dict[str, float]]
    """Totals of `keylag.sql_sides` by method; empty if the database was not asked."""


def named(name: str, breakdown: Breakdown) -> Run:
    """Give a break-down its name."""
    return Run(name=name, sql_sides={}, **breakdown)


def break_down(
    samples: Iterable[Sample],
    environment: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
) -> Breakdown:
    """Break the calls of one run down, in the order in which they first came.

    `environment` and `warnings` are passed on into the result as they are.
    """
    groups: dict[tuple[str, str, str | None], list[Sample]] = defaultdict(list)
    setup_requests = 0
    for sample in samples:
        if sample.is_setup:
            setup_requests += 1
        else:
            groups[call_of(sample.label)].append(sample)
    calls = [_call(key, group) for key, group in groups.items()]
    return Breakdown(
        calls=calls,
        setup_requests=setup_requests,
        quantiles=QUANTILE_METHOD,
        warnings=[*warnings, *_doubts(groups)],
        environment=dict(environment or {}),
    )


def call_of(label: str) -> tuple[str, str, str | None]:
    """Split a sampler's label into method, route and authentication method."""
    method, route, auth_method = [*label.split(" ", 2), "", ""][:3]
    return method, route, auth_method or None


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the quantile of sorted values (type 7); at least one is needed."""
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    above = math.ceil(place)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


_STATISTICS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "mean": lambda ordered: math.fsum(ordered) / len(ordered),
    "p50": lambda ordered: quantile(ordered, 0.50),
    "p95": lambda ordered: quantile(ordered, 0.95),
    "p99": lambda ordered: quantile(ordered, 0.99),
    "max": lambda ordered: ordered[-1],
    "min": lambda ordered: ordered[0],
}

_FULL: Final = ("mean", "p50", "p95")
_MEAN: Final = ("mean",)


def _numbers(values: Iterable[float], *wanted: str) -> Numbers | None:
    ordered = sorted(values)
    if not ordered:
        return None
    return {name: _STATISTICS[name](ordered) for name in wanted}


def _call(key: tuple[str, str, str | None], samples: list[Sample]) -> Call:
    answered = [sample for sample in samples if sample.success and not sample.refused]
    timings = [sample.timing for sample in answered if sample.timing]
    method, route, auth_method = key
    return Call(
        method=method,
        route=route,
        auth_method=auth_method,
        requests=len(samples),
        errors=sum(not sample.success for sample in samples),
        failures=_failures(samples),
        refused=sum(sample.refused for sample in samples),
        unmeasured=len(answered) - len(timings),
        client_seconds=_numbers(
            (sample.elapsed_seconds for sample in answered), *_STATISTICS
        ),
        wall_seconds=_numbers(
            (timing.total_seconds for timing in timings), "mean", "p50", "p95", "p99"
        ),
        categories=_summed(timings, category_of, _FULL, CATEGORIES, always=True),
        phases=_summed(timings, lambda cell: cell[0], _FULL, PHASES),
        operations=_summed(timings, lambda cell: cell[1], _MEAN, OPERATIONS),
        cells=_summed(timings, ".".join, _MEAN, ()),
        sql_statements=_counted(timings, "sql_statements"),
        cache_calls=_counted(timings, "cache_calls"),
    )


def _failures(samples: Iterable[Sample]) -> dict[str, int]:
    failed = (f"{one.code} {one.message}" for one in samples if not one.success)
    return dict(Counter(failed).most_common())


def _counted(timings: Sequence[ServerTiming], name: str) -> Numbers | None:
    values = (timing.counts[name] for timing in timings if name in timing.counts)
    return _numbers(values, "mean", "p95")


def _summed(
    timings: Sequence[ServerTiming],
    part_of: Callable[[Cell], str],
    wanted: Sequence[str],
    known: tuple[str, ...],
    *,
    always: bool = False,
) -> dict[str, Numbers]:
    """Return the statistics of each part; a part that a request lacks is zero."""
    if not timings:
        return {}
    sums = [_sums(timing.cells, part_of) for timing in timings]
    wall = math.fsum(timing.total_seconds for timing in timings)
    found: set[str] = set().union(*sums, known if always else ())
    result = {}
    for part in in_order(found, known):
        values = [one.get(part, 0.0) for one in sums]
        share = math.fsum(values) / wall if wall else 0.0
        result[part] = {**(_numbers(values, *wanted) or {}), "share": share}
    return result


def _sums(cells: Mapping[Cell, float], part_of: Callable[[Cell], str]) -> Numbers:
    sums: Numbers = defaultdict(float)
    for cell, seconds in cells.items():
        sums[part_of(cell)] += seconds
    return sums


def _doubts(groups: Mapping[tuple[str, str, str | None], list[Sample]]) -> list[str]:
    """Say when the result should not be trusted."""
    timings = [
        sample.timing for group in groups.values() for sample in group if sample.timing
    ]
    apart = sum(not timing.adds_up() for timing in timings)
    if not apart:
        return []
    message = (
        f"In {apart} of {len(timings)} samples the parts do not add up to the total; "
        "the instrumentation has a fault there."
    )
    return [message]


def throughput_per_second(samples: Sequence[Sample]) -> float | None:
    """Return requests per second from the first start to the last end.

    None for less than two requests.  Set-up requests do not count.
    """
    load = [sample for sample in samples if not sample.is_setup]
    if len(load) <= 1:
        return None
    first = min(sample.start_seconds for sample in load)
    last = max(sample.start_seconds + sample.elapsed_seconds for sample in load)
    return len(load) / (last - first) if last > first else None
