"""Quantiles and means of durations, with intervals at 95 % by the bootstrap."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from scipy.stats import bootstrap

from keylag.experiment.interval import Interval

LEAST_SAMPLES: Final = 5
"""Fewer have no interval."""


def median(seconds: Sequence[float]) -> Interval:
    """Return the median; NaN without values."""
    return estimate(np.median, seconds)


def quantile(seconds: Sequence[float], share: float) -> Interval:
    """Return the quantile of a share, such as 0.95; NaN without values."""
    return estimate(partial(np.quantile, q=share), seconds)


def mean(seconds: Sequence[float]) -> Interval:
    """Return the mean; NaN without values."""
    return estimate(np.mean, seconds)


def estimate(
    statistic: Callable[..., Any], *samples: Sequence[float], paired: bool = False
) -> Interval:
    """Return a statistic of samples; NaN if one is empty.

    `statistic` takes the samples and an axis, as functions of numpy do.  `paired`
    samples have the same length, and belong together by position.
    """
    if not all(map(len, samples)):
        return Interval(math.nan, math.nan, math.nan)
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
