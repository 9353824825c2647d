"""From blocks to ratios with intervals.

The estimate is a ratio of means: all of an arm's seconds by all of the base's, so
that work which comes in lumps, an export or a garbage collection, counts in full.

Its interval is the percentile interval of a two-level bootstrap: restarts are drawn
with replacement, then the blocks of each, every block with all its arms (T. Kalibera
and R. Jones, "Rigorous benchmarking in reasonable time", ISMM 2013; A. C. Davison and
D. V. Hinkley, "Bootstrap Methods and their Application", 1997, on hierarchical data).
With few restarts it is, if anything, too narrow where restarts differ more than the
blocks within them; the control shows whether that is so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from keylag_bench.rows import Row
from keylag_bench.tables import BASE

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
    """Return the totals of two-level resamples."""
    choice = Random(seed)
    return [
        total(
            [
                choice.choices(blocks, k=len(blocks))
                for blocks in choice.choices(restarts, k=len(restarts))
            ]
        )
        for _ in range(number)
    ]


def interval(
    statistic: Statistic, totals: Block, resamples: Sequence[Block]
) -> Interval:
    """Return a statistic of the totals and where 95 % of its resamples lie."""
    values = sorted(map(statistic, resamples))
    tail = round(len(values) * (1 - LEVEL) / 2)
    return Interval(values[tail], statistic(totals), values[-1 - tail])


def ratio_of(arm: str) -> Statistic:
    """Return the statistic: this arm's seconds by the base's."""
    return lambda seconds: seconds[arm] / seconds[BASE]


def share_of(arm: str, other: str) -> Statistic:
    """Return the statistic: what this arm adds by what the other one adds.

    Infinite where the other one adds nothing.
    """

    def share(seconds: Block) -> float:
        added = seconds[other] - seconds[BASE]
        return (seconds[arm] - seconds[BASE]) / added if added > 0 else float("inf")

    return share
