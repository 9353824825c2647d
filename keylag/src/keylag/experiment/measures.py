"""From an arm's requests of one round to its figures.

JMeter counts whole milliseconds from the clock at both ends of a request, so a
latency of x ms stands for something within half a millisecond of x on either side.
A quantile is therefore taken as of grouped data: requests of one value are spread
evenly over its millisecond.  Plain quantiles would jump by one millisecond at a
time and never show 2 % of 5 ms.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Final

from keylag.experiment.samples import Row
from keylag.phases import CATEGORIES
from keylag.server_timing import COUNTS

RESOLUTION_SECONDS: Final = 0.001
MIN_REQUESTS: Final = 5
"""A round with fewer answered as asked says nothing of an arm."""
OUTSIDE: Final = "outside"
"""The client's time less Keystone's: waiting for a worker, network, the client."""
PARTS: Final = (*CATEGORIES, OUTSIDE)
"""What the client's mean is the sum of."""


def grouped_quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of seconds that were counted in whole milliseconds."""
    whole = Counter(round(value / RESOLUTION_SECONDS) for value in values)
    wanted = share * len(values)
    below = 0
    for value, number in sorted(whole.items()):
        if below + number >= wanted:
            return (value - 0.5 + (wanted - below) / number) * RESOLUTION_SECONDS
        below += number
    message = "no values"
    raise ValueError(message)


def seconds_under_load(rows: Iterable[Row]) -> dict[tuple[str, int], float]:
    """Return for how long each arm was asked in each round, by (arm, round).

    A slice is from the first start to the last end of requests without another arm's
    between them; what follows it is not the arm's time.
    """
    seconds_by_arm_and_round: dict[tuple[str, int], float] = defaultdict(float)
    ordered = sorted(rows, key=lambda row: (row.round, row.start_seconds))
    for key, group in groupby(ordered, lambda row: (row.arm, row.round)):
        slice_ = list(group)
        end = max(row.start_seconds + row.latency_seconds for row in slice_)
        seconds_by_arm_and_round[key] += end - slice_[0].start_seconds
    return seconds_by_arm_and_round


MEASURES: Final[Mapping[str, Callable[[Sequence[float], float], float]]] = {
    "p50": lambda latencies, _seconds: grouped_quantile(latencies, 0.50),
    "p95": lambda latencies, _seconds: grouped_quantile(latencies, 0.95),
    "mean": lambda latencies, _seconds: fmean(latencies),
    "throughput": lambda latencies, seconds: len(latencies) / seconds,
}
"""What a plan may decide by: seconds at the client, and requests per second."""

HIGHER_IS_BETTER: Final = ("throughput",)


def measure_round(rows: Sequence[Row], seconds: float) -> dict[str, float] | None:
    """Return an arm's measures, parts and counts; None if too few went well.

    `seconds` is for how long it was asked; in no time nothing can be measured.

    The parts add up to the mean; without Keystone's own measurement there are none.
    """
    if len(rows) < MIN_REQUESTS or seconds <= 0:
        return None
    latencies = [row.latency_seconds for row in rows]
    found = {name: measure(latencies, seconds) for name, measure in MEASURES.items()}
    if all(row.server_timing for row in rows):
        found |= _means(rows, (*CATEGORIES, *COUNTS))
        found[OUTSIDE] = found["mean"] - math.fsum(found[name] for name in CATEGORIES)
    return found


def _means(rows: Sequence[Row], names: Sequence[str]) -> dict[str, float]:
    return {
        name: fmean(row.server_timing.get(name, 0.0) for row in rows) for name in names
    }
