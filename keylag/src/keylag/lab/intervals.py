"""Quantiles and means with intervals at 95 %.

Those of means are by Student's t, and hold for few values, too.  Those of quantiles are
two of the values: the number of values below a quantile is binomial, whatever the
distribution.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from scipy import stats
from scipy.stats import bootstrap

from keylag.experiment.estimates import estimate_mean
from keylag.experiment.interval import Interval

TAILS: Final = (0.025, 0.975)
LEAST_SAMPLES: Final = 5
"""Fewer have no interval by the bootstrap."""
UNKNOWN: Final = Interval(math.nan, math.nan, math.nan)


def median(values: Sequence[float]) -> Interval:
    """Return the median; NaN without values, without an interval for less than six."""
    return quantile(values, 0.5)


def quantile(values: Sequence[float], share: float) -> Interval:
    """Return the quantile of a share, such as 0.95; NaN without values.

    An end is infinite where no value bounds it: the 95th percentile needs 72 values.
    """
    ordered, count = sorted(values), len(values)
    if not count:
        return UNKNOWN
    below, least = (int(one) for one in stats.binom.ppf(TAILS, count, share))
    low = ordered[below - 1] if below else -math.inf
    high = ordered[least] if least < count else math.inf
    return Interval(low, float(np.quantile(ordered, share)), high)


def mean(values: Sequence[float]) -> Interval:
    """Return the mean; NaN without values, without an interval for one or equal ones.

    Equal values are equal by rounding.
    """
    if not len(values):
        return UNKNOWN
    found = estimate_mean(values)
    if not math.isfinite(found.standard_error):
        return Interval(-math.inf, found.mean, math.inf)
    half = stats.t.isf(TAILS[0], found.degrees_of_freedom) * found.standard_error
    return Interval(found.mean - half, found.mean, found.mean + half)


def ratio(pairs: Sequence[tuple[float, float]]) -> Interval:
    """Return the geometric mean of the ratios of pairs of positive values.

    NaN without pairs.
    """
    return mean([math.log(one / other) for one, other in pairs]).mapped(math.exp)


def estimate(
    statistic: Callable[..., Any], *samples: Sequence[float], paired: bool = False
) -> Interval:
    """Return a statistic of samples by the bootstrap; NaN if one is empty.

    `statistic` takes the samples and an axis, as functions of numpy do.  `paired`
    samples have the same length, and belong together by position.
    """
    if not all(map(len, samples)):
        return UNKNOWN
    mid = float(statistic(*map(np.asarray, samples), axis=-1))
    if min(map(len, samples)) < LEAST_SAMPLES:
        return Interval(-math.inf, mid, math.inf)
    found = bootstrap(
        samples, statistic, paired=paired, method="percentile", random_state=0
    )
    limits = found.confidence_interval
    return Interval(float(limits.low), mid, float(limits.high))


def as_json(interval: Interval) -> list[float | None]:
    """Return low, mid and high for JSON, which has null for what is unknown."""
    values = (interval.low, interval.mid, interval.high)
    return [value if math.isfinite(value) else None for value in values]
