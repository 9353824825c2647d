"""A confidence sequence: an interval for a mean that stays valid after every round.

A usual confidence interval covers the true value with 95 % for a number of rounds that
was fixed in advance.  Whoever looks after each round and stops at a good moment is
wrong far more often.  A confidence sequence covers the true value with 95 % at all
times together: one may look after each round, stop at a clear result, and resume later.

This one is for the mean of normal values of unknown spread.  It inverts a t test
martingale whose alternative is a normal mixture of effects, in units of the spread,
with standard deviation `MIXTURE_SD` (T. L. Lai, "On confidence sequences", Annals of
Statistics 1976; H. Wang and A. Ramdas, "Anytime-valid t-tests and confidence
sequences for Gaussian means with unknown variance", Sequential Analysis 2025; the
same idea with a known spread is the mixture SPRT of R. Johari et al., "Always valid
inference", Operations Research 2022).  By Ville's inequality the martingale

    (1 + n c²)^(-1/2) * ((1 + t²/v) / (1 + t²/(v (1 + n c²))))^(n/2),   v = n - 1,

exceeds 1/alpha with probability alpha at most.  The interval holds all means that the
martingale does not reject.  The value of a round is a difference of means or quantiles
of many requests, which is close to normal; `bench/simulate.py` measures the error that
remains.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final

MIXTURE_SD: Final = 1.5
"""Fastest for effects of one to two standard deviations between rounds."""

MIN_VALUES: Final = 2
"""Values needed for a standard deviation; at 95 % intervals are finite from four on."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its interval; the ends are infinite while the data is too small."""

    low: float
    mid: float
    high: float

    def scaled(self, factor: float) -> "Interval":
        """Return the interval in another unit; `factor` must be positive."""
        return Interval(self.low * factor, self.mid * factor, self.high * factor)


def half_width_in_sd(rounds: int, alpha: float) -> float:
    """Return half the interval's width in standard deviations of a round's value.

    It is infinite when `rounds` is too small for the level `1 - alpha`.
    """
    if rounds < MIN_VALUES:
        return math.inf
    scale = 1 + rounds * MIXTURE_SD**2
    ratio = (math.sqrt(scale) / alpha) ** (2 / rounds)
    if ratio >= scale:
        return math.inf
    squared_t = (rounds - 1) * (ratio - 1) / (1 - ratio / scale)
    return math.sqrt(squared_t / rounds)


def interval_around(
    mean: float, deviation: float, rounds: int, alpha: float
) -> Interval:
    """Return the interval for a mean and standard deviation of `rounds` values."""
    in_sd = half_width_in_sd(rounds, alpha)
    half_width = math.inf if math.isinf(in_sd) else in_sd * deviation
    return Interval(mean - half_width, mean, mean + half_width)


def confidence_interval(
    values: Sequence[float], alpha: float, *, exact: bool = False
) -> Interval:
    """Return the interval for the mean of one or more values.

    Equal times are equal only by rounding, so their interval is infinite.  With
    `exact`, for counts, equal values have an interval of zero width.
    """
    deviation = stdev(values) if len(values) >= MIN_VALUES else math.inf
    if not (deviation or exact):
        deviation = math.inf
    return interval_around(fmean(values), deviation, len(values), alpha)
