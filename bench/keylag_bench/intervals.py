"""From rounds to ratios with intervals.

The estimate is a ratio of means: all of an arm's seconds by all of the base's, so
that work which comes in lumps, an export or a garbage collection, counts in full.

Its interval goes Student's t times the bootstrap's standard error each way.  The
bootstrap draws restarts with replacement, each with all its rounds: to draw the rounds
too would count what differs between them twice (A. C. Davison and D. V. Hinkley,
"Bootstrap Methods and their Application", 1997, 3.8; S. Ren and others, "Nonparametric
bootstrapping for hierarchical data", Journal of Applied Statistics 37, 2010).  Its
standard error is too small by the square root of (n - 1) / n, which is made up for
(T. Hesterberg, "What teachers should know about the bootstrap", The American
Statistician 69, 2015: narrowness bias, and the t interval with bootstrap standard
error).  It takes two restarts at least; the fewer there are, the more rests on the
differences between them being close to normal.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np
from scipy import stats

from keylag_bench.arms_and_workloads import BASE, CONTROL
from keylag_bench.raw_results import Row

RESAMPLES = 2000
LEVEL = 0.95
MIN_RESTARTS = 2
"""With fewer there is nothing to tell what the next restart would bring."""

SecondsByArm = Mapping[str, float]
"""Seconds by arm."""
Restarts = Sequence[Sequence[SecondsByArm]]
"""The rounds of each restart."""
Totals = Mapping[str, Any]
"""Seconds by arm, of many rounds: numbers, or arrays with an element a resample."""
Statistic = Callable[[Totals], Any]
"""Computed from totals; an array from arrays."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its 95 % interval; the ends are infinite if there is none."""

    low: float
    mid: float
    high: float

    @property
    def width(self) -> float:
        """From end to end."""
        return self.high - self.low

    def contains(self, value: float) -> bool:
        """Tell whether a value lies in it."""
        return self.low <= value <= self.high

    def as_list(self) -> list[float | None]:
        """Return [low, mid, high] for JSON, which has null for what is infinite."""
        known = (self.low, self.mid, self.high)
        return [value if isfinite(value) else None for value in known]

    def as_text(self) -> str:
        """Return it as a reader sees it."""
        if not isfinite(self.width):
            return f"{self.mid:.3f} (no interval)"
        return f"{self.mid:.3f} [{self.low:.3f}, {self.high:.3f}]"


def complete_rounds(
    rows: Iterable[Row], seconds: Callable[[Row], float], arms: Sequence[str]
) -> Restarts:
    """Return the rounds of one workload; those that lack an arm are left out."""
    found: dict[int, dict[int, dict[str, float]]] = {}
    for row in rows:
        rounds = found.setdefault(row.restart, {})
        rounds.setdefault(row.round, {})[row.arm] = seconds(row)
    whole = [
        [this_round for this_round in rounds.values() if set(arms) <= set(this_round)]
        for rounds in found.values()
    ]
    return [rounds for rounds in whole if rounds]


def total_seconds(restarts: Restarts) -> dict[str, float]:
    """Add up the seconds of every arm."""
    seconds_of_restarts: dict[str, float] = {}
    for this_round in (this_round for rounds in restarts for this_round in rounds):
        for arm, seconds in this_round.items():
            seconds_of_restarts[arm] = seconds_of_restarts.get(arm, 0.0) + seconds
    return seconds_of_restarts


def bootstrap_interval(
    statistic: Statistic, restarts: Restarts, seed: int, resamples: int = RESAMPLES
) -> Interval:
    """Return a statistic of all rounds, and where it lies."""
    mid = float(statistic(total_seconds(restarts)))
    half = inf
    if len(restarts) >= MIN_RESTARTS:
        error = bootstrap_standard_error(statistic, restarts, seed, resamples)
        half = error * _t_quantile(len(restarts) - 1)
    if not isfinite(half):
        return Interval(-inf, mid, inf)
    return Interval(mid - half, mid, mid + half)


def bootstrap_standard_error(
    statistic: Statistic, restarts: Restarts, seed: int, resamples: int = RESAMPLES
) -> float:
    """Return a statistic's standard error; NaN if it is infinite in some resample."""
    seconds_of_restarts = [total_seconds([rounds]) for rounds in restarts]
    arms = list(seconds_of_restarts[0])

    def of_resamples(*drawn: Any, axis: int) -> Any:
        totals = (seconds.sum(axis=axis) for seconds in drawn)
        return statistic(dict(zip(arms, totals, strict=True)))

    with np.errstate(invalid="ignore"):
        found = stats.bootstrap(
            [[seconds[arm] for seconds in seconds_of_restarts] for arm in arms],
            of_resamples,
            paired=True,
            vectorized=True,
            n_resamples=resamples,
            method="percentile",
            rng=seed,
        )
    return float(found.standard_error) * sqrt(len(restarts) / (len(restarts) - 1))


def _t_quantile(degrees_of_freedom: int) -> float:
    return float(stats.t.ppf((1 + LEVEL) / 2, degrees_of_freedom))


def _bare_seconds(seconds: Totals) -> Any:
    """Return bare Keystone's seconds, the mean of both where it ran twice."""
    both = [seconds[arm] for arm in (BASE, CONTROL) if arm in seconds]
    return sum(both) / len(both)


def ratio_statistic(arm: str, other: str | None = None) -> Statistic:
    """Return the statistic: this arm's seconds by another's, else bare Keystone's.

    The control is compared with the other bare Keystone alone.
    """
    if other is None and arm in {BASE, CONTROL}:
        other = BASE
    if other is None:
        return lambda seconds: seconds[arm] / _bare_seconds(seconds)
    return lambda seconds: seconds[arm] / seconds[other]


def share_statistic(arm: str, other: str) -> Statistic:
    """Return the statistic: what this arm adds by what the other one adds.

    Infinite where the other one adds nothing.
    """

    def share(seconds: Totals) -> Any:
        base = _bare_seconds(seconds)
        added = seconds[other] - base
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.divide(seconds[arm] - base, added)
        return np.where(added > 0, found, inf)

    return share
