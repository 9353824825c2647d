"""Compute the figures of an arm in one round from its requests.

JMeter reads the clock in whole milliseconds at both ends of a request.  A latency of
x ms is therefore a value within x - 1 and x + 1 ms, and x on average.  Quantiles are
those of grouped data: requests with the same value are spread evenly over the
millisecond around it.  Plain quantiles would jump by one millisecond and could not
resolve 2 % of 5 ms.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final

from keylag.experiment.samples import Row
from keylag.phases import CATEGORIES
from keylag.server_timing import COUNTS

RESOLUTION_SECONDS: Final = 0.001
MIN_REQUESTS: Final = 5
"""Successful requests that an arm needs for figures of a round."""
OUTSIDE: Final = "outside"
"""The client's time minus Keystone's: waiting for a worker, network, client."""
PARTS: Final = (*CATEGORIES, OUTSIDE)
"""The parts that add up to the client's mean."""


def grouped_quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of seconds that were recorded in whole milliseconds.

    Raises ValueError without values.
    """
    by_millisecond = Counter(round(value / RESOLUTION_SECONDS) for value in values)
    wanted = share * len(values)
    below = 0
    for value, number in sorted(by_millisecond.items()):
        if below + number >= wanted:
            return (value - 0.5 + (wanted - below) / number) * RESOLUTION_SECONDS
        below += number
    message = "no values"
    raise ValueError(message)


def seconds_under_load(rows: Iterable[Row]) -> dict[tuple[str, int], float]:
    """Return how long each arm was under load in each round, by (arm, round).

    That is the time in which at least one of its requests was under way.
    """
    seconds: dict[tuple[str, int], float] = defaultdict(float)
    ends: dict[tuple[str, int], float] = {}
    for row in sorted(rows, key=lambda row: row.start_seconds):
        key = row.arm, row.round
        end = row.start_seconds + row.latency_seconds
        begin = max(row.start_seconds, ends.get(key, row.start_seconds))
        seconds[key] += max(0.0, end - begin)
        ends[key] = max(end, begin)
    return seconds


MEASURES: Final[Mapping[str, Callable[[Sequence[float], float], float]]] = {
    "p50": lambda latencies, _seconds: grouped_quantile(latencies, 0.50),
    "p95": lambda latencies, _seconds: grouped_quantile(latencies, 0.95),
    "mean": lambda latencies, _seconds: fmean(latencies),
    "throughput": lambda latencies, seconds: len(latencies) / seconds,
}
"""The measures a plan may decide by: seconds at the client, requests per second."""

HIGHER_IS_BETTER: Final = ("throughput",)


def measure_round(rows: Sequence[Row], seconds: float) -> dict[str, float] | None:
    """Return the measures, parts and counts of an arm in one round.

    `rows` are its successful requests, `seconds` its time under load.  Returns None
    with fewer than MIN_REQUESTS rows, without time, and if JMeter's clock sees no time
    in most requests, because figures are compared as ratios.  Parts and counts need a
    Server-Timing in each row; the parts add up to the mean.
    """
    if len(rows) < MIN_REQUESTS or seconds <= 0:
        return None
    latencies = [row.latency_seconds for row in rows]
    figures = {name: measure(latencies, seconds) for name, measure in MEASURES.items()}
    if figures["p50"] <= 0:
        return None
    if all(row.server_timing for row in rows):
        figures |= _means(rows, (*CATEGORIES, *COUNTS))
        inside = math.fsum(figures[name] for name in CATEGORIES)
        figures[OUTSIDE] = figures["mean"] - inside
    return figures


def _means(rows: Sequence[Row], names: Sequence[str]) -> dict[str, float]:
    return {
        name: fmean(row.server_timing.get(name, 0.0) for row in rows) for name in names
    }
