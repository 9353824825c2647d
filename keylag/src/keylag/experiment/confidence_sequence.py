"""An interval for a mean that may be looked at after every round.

The usual interval holds with 95 % for a number of rounds that was fixed before.
Who stops when it looks good is wrong far more often.  This one holds with 95 % at
all times together, so one may look after each round, stop when it is clear, and go
on later.

It is a confidence sequence for the mean of normal values of unknown spread: the
effects against which the t test's martingale bets are normal too, in units of the
spread, with deviation `MIXTURE_SD` (T. L. Lai, "On confidence sequences", Annals of
Statistics 1976; H. Wang and A. Ramdas, "Anytime-valid t-tests and confidence
sequences for Gaussian means with unknown variance", Sequential Analysis 2025; the
same idea with a known spread is the mixture SPRT of R. Johari et al., "Always valid
inference", Operations Research 2022).  By Ville's inequality the martingale

    (1 + n c²)^(-1/2) * ((1 + t²/v) / (1 + t²/(v (1 + n c²))))^(n/2),   v = n - 1,

passes 1/alpha with probability alpha at most; the interval is what it does not rule
out.  A round's value is a difference of means or quantiles of many requests, which
is close to normal; `bench/simulate.py` shows what is left of the error.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final

MIXTURE_SD: Final = 1.5
"""Effects of one to two spreads between rounds are found soonest."""

MIN_VALUES: Final = 2
"""Values that have a spread; at 95 % an interval is finite from four on."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and where it lies; the ends are infinite while nothing can be said."""

    low: float
    mid: float
    high: float

    def scaled(self, factor: float) -> "Interval":
        """Return it in another unit; `factor` is positive."""
        return Interval(self.low * factor, self.mid * factor, self.high * factor)


def half_width_in_sd(rounds: int, alpha: float) -> float:
    """Return how many standard deviations of a round the interval goes each way."""
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
    """Return the interval of a mean of rounds with this standard deviation."""
    half_width = half_width_in_sd(rounds, alpha)
    half_width = math.inf if math.isinf(half_width) else half_width * deviation
    return Interval(mean - half_width, mean, mean + half_width)


def confidence_interval(
    values: Sequence[float], alpha: float, *, exact: bool = False
) -> Interval:
    """Return where the mean of the values lies; at least one is needed.

    Times that are all alike were rounded to that, so their spread is not known.
    Values that were counted may well be alike.
    """
    deviation = stdev(values) if len(values) >= MIN_VALUES else math.inf
    if not (deviation or exact):
        deviation = math.inf
    return interval_around(fmean(values), deviation, len(values), alpha)
