"""From blocks to ratios with intervals.

The estimate is a ratio of means: all of an arm's seconds by all of the base's, so
that work which comes in lumps, an export or a garbage collection, counts in full.

Its interval is that of a bootstrap which draws restarts with replacement, each with
all its blocks.  To draw the blocks too would count what differs between them twice
(A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application", 1997, 3.8;
S. Ren and others, "Nonparametric bootstrapping for hierarchical data", Journal of
Applied Statistics 37, 2010).  Its ends are not those quantiles of the resamples that
leave out 5 %, which are too narrow where restarts are few, but lie as far out as
Student's t puts them (T. Hesterberg, "What teachers should know about the bootstrap",
The American Statistician 69, 2015: the expanded percentile interval).  With less than
six restarts they are too narrow all the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from random import Random
from statistics import NormalDist, fmean

from keylag_bench.rows import Row
from keylag_bench.tables import BASE, CONTROL

RESAMPLES = 2000
LEVEL = 0.95

Block = Mapping[str, float]
"""Seconds by arm."""
Restarts = Sequence[Sequence[Block]]
"""The blocks of each restart."""
Statistic = Callable[[Block], float]
"""Computed from the seconds of many blocks, added up."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its 95 % interval; `low` and `high` may be infinite."""

    low: float
    mid: float
    high: float

    @property
    def width(self) -> float:
        """From end to end."""
        return self.high - self.low

    def holds(self, value: float) -> bool:
        """Tell whether a value lies in it."""
        return self.low <= value <= self.high

    def as_list(self) -> list[float]:
        """Return [low, mid, high]."""
        return [self.low, self.mid, self.high]


def blocks_of(
    rows: Iterable[Row], seconds: Callable[[Row], float], arms: Sequence[str]
) -> Restarts:
    """Return the blocks of one workload; those that lack an arm are left out."""
    found: dict[int, dict[int, dict[str, float]]] = {}
    for row in rows:
        blocks = found.setdefault(row.restart, {})
        blocks.setdefault(row.block, {})[row.arm] = seconds(row)
    whole = [
        [block for block in blocks.values() if set(arms) <= set(block)]
        for blocks in found.values()
    ]
    return [blocks for blocks in whole if blocks]


def total(restarts: Restarts) -> dict[str, float]:
    """Add up the seconds of every arm."""
    sums: dict[str, float] = {}
    for block in (block for blocks in restarts for block in blocks):
        for arm, seconds in block.items():
            sums[arm] = sums.get(arm, 0.0) + seconds
    return sums


def resampled(
    restarts: Restarts, seed: int, number: int = RESAMPLES
) -> list[dict[str, float]]:
    """Return the totals of resamples of whole restarts."""
    choice = Random(seed)
    sums = [total([blocks]) for blocks in restarts]
    return [total([choice.choices(sums, k=len(sums))]) for _ in range(number)]


def interval(
    statistic: Statistic, restarts: Restarts, resamples: Sequence[Block]
) -> Interval:
    """Return a statistic of all blocks, and the interval that its resamples give."""
    values = sorted(map(statistic, resamples))
    tail = round(len(values) * _left_out(len(restarts)))
    return Interval(values[tail], statistic(total(restarts)), values[-1 - tail])


def _left_out(restarts: int) -> float:
    """Return how much of the resamples lies outside of either end of an interval."""
    if restarts == 1:
        return 0.0
    freedom = restarts - 1
    ends = _students_t((1 + LEVEL) / 2, freedom) * sqrt(restarts / freedom)
    return NormalDist().cdf(-ends)


def _students_t(probability: float, freedom: int) -> float:
    """Return a quantile of Student's t, by its expansion in 1 / `freedom`.

    Right to a hundredth from five degrees of freedom on (Abramowitz and Stegun,
    26.7.5).
    """
    z = NormalDist().inv_cdf(probability)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return sum(term / float(freedom) ** power for power, term in enumerate(terms))


def _base(seconds: Block) -> float:
    """Return bare Keystone's seconds, the mean of both where it ran twice."""
    return fmean(seconds[arm] for arm in (BASE, CONTROL) if arm in seconds)


def ratio_of(arm: str) -> Statistic:
    """Return the statistic: this arm's seconds by bare Keystone's.

    The control is compared with the other bare Keystone alone.
    """
    if arm in {BASE, CONTROL}:
        return lambda seconds: seconds[arm] / seconds[BASE]
    return lambda seconds: seconds[arm] / _base(seconds)


def share_of(arm: str, other: str) -> Statistic:
    """Return the statistic: what this arm adds by what the other one adds.

    Infinite where the other one adds nothing.
    """

    def share(seconds: Block) -> float:
        base = _base(seconds)
        added = seconds[other] - base
        return (seconds[arm] - base) / added if added > 0 else float("inf")

    return share
