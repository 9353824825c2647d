"""Compute ratios between arms with confidence intervals.

The estimate is a ratio of means: all seconds of an arm divided by all seconds of the
base.  Rare work, such as an export or a garbage collection, thus counts in full.

The half width of the interval is Student's t times the standard error of a bootstrap.
The bootstrap resamples whole restarts with all their rounds.  Resampling rounds too
would count the variance between rounds twice (A. C. Davison and D. V. Hinkley,
"Bootstrap Methods and their Application", 1997, 3.8; S. Ren and others, "Nonparametric
bootstrapping for hierarchical data", Journal of Applied Statistics 37, 2010).  The
bootstrap's standard error is too small by the square root of (n - 1) / n, which is
corrected (T. Hesterberg, "What teachers should know about the bootstrap", The American
Statistician 69, 2015: narrowness bias, and the t interval with bootstrap standard
error).  Two restarts are the minimum.  With few restarts, the interval relies on
differences between restarts that are close to normal.
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
"""The minimum for a variance between restarts."""

SecondsByArm = Mapping[str, float]
"""The seconds of each arm in one round."""
Restarts = Sequence[Sequence[SecondsByArm]]
"""The rounds of each restart."""
Totals = Mapping[str, Any]
"""Seconds of each arm in many rounds: numbers, or arrays with one per resample."""
Statistic = Callable[[Totals], Any]
"""A function of totals; arrays of totals give an array."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval, whose ends are infinite without data."""

    low: float
    mid: float
    high: float

    @property
    def width(self) -> float:
        """The distance between both ends."""
        return self.high - self.low

    def contains(self, value: float) -> bool:
        """Return whether the interval contains a value; both ends belong to it."""
        return self.low <= value <= self.high

    def as_list(self) -> list[float | None]:
        """Return [low, mid, high] for JSON, with None for infinite values."""
        values = (self.low, self.mid, self.high)
        return [value if isfinite(value) else None for value in values]

    def as_text(self) -> str:
        """Return the estimate and the interval as text."""
        if not isfinite(self.width):
            return f"{self.mid:.3f} (no interval)"
        return f"{self.mid:.3f} [{self.low:.3f}, {self.high:.3f}]"


def complete_rounds(
    rows: Iterable[Row], seconds: Callable[[Row], float], arms: Sequence[str]
) -> Restarts:
    """Return the rounds with all arms, by restart, from the rows of one workload."""
    found: dict[int, dict[int, dict[str, float]]] = {}
    for row in rows:
        rounds = found.setdefault(row.restart, {})
        rounds.setdefault(row.round, {})[row.arm] = seconds(row)
    complete = [
        [this_round for this_round in rounds.values() if set(arms) <= set(this_round)]
        for rounds in found.values()
    ]
    return [rounds for rounds in complete if rounds]


def total_seconds(restarts: Restarts) -> dict[str, float]:
    """Return the total seconds of each arm."""
    seconds_of_restarts: dict[str, float] = {}
    for this_round in (this_round for rounds in restarts for this_round in rounds):
        for arm, seconds in this_round.items():
            seconds_of_restarts[arm] = seconds_of_restarts.get(arm, 0.0) + seconds
    return seconds_of_restarts


def bootstrap_interval(
    statistic: Statistic, restarts: Restarts, seed: int, resamples: int = RESAMPLES
) -> Interval:
    """Return the estimate of a statistic with its 95 % interval."""
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
    """Return the standard error; NaN if the statistic is infinite in a resample."""
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
    # The mean of both bare arms, if the control was measured too.
    both = [seconds[arm] for arm in (BASE, CONTROL) if arm in seconds]
    return sum(both) / len(both)


def ratio_statistic(arm: str, other: str | None = None) -> Statistic:
    """Return the ratio of an arm's seconds to those of `other`, as a statistic.

    By default, `other` is bare Keystone: the mean of the base and the control.  The
    control itself is compared with the base.
    """
    if other is None and arm in {BASE, CONTROL}:
        other = BASE
    if other is None:
        return lambda seconds: seconds[arm] / _bare_seconds(seconds)
    return lambda seconds: seconds[arm] / seconds[other]


def share_statistic(arm: str, other: str) -> Statistic:
    """Return the overhead of an arm as a share of the overhead of another arm.

    It is infinite if the other arm has no overhead.
    """

    def share(seconds: Totals) -> Any:
        base = _bare_seconds(seconds)
        added = seconds[other] - base
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.divide(seconds[arm] - base, added)
        return np.where(added > 0, found, inf)

    return share
