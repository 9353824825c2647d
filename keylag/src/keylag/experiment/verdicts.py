"""Verdicts on intervals, and the number of rounds until a verdict."""

from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import Final

from keylag.experiment.confidence_sequence import MIN_VALUES, Interval, interval_around

FASTER: Final = "faster"
SLOWER: Final = "slower"
NO_DIFFERENCE: Final = "no difference that matters"
CANNOT_TELL: Final = "cannot tell yet"

MAX_FORECAST_ROUNDS: Final = 10_000
"""Forecasts of more rounds are useless in practice."""


def verdict(found: Interval, margin: float, *, higher_is_better: bool = False) -> str:
    """Judge a difference by its whole interval.

    - An interval on one side of zero is faster or slower.
    - An interval within `margin` on both sides of zero is no difference that matters;
      so is a figure that is always zero.
    - Everything else, NaN included, is cannot tell.
    """
    always_zero = found.low == found.high == 0
    if always_zero or (-margin < found.low and found.high < margin):
        return NO_DIFFERENCE
    if found.low > 0:
        return FASTER if higher_is_better else SLOWER
    if found.high < 0:
        return SLOWER if higher_is_better else FASTER
    return CANNOT_TELL


def rounds_needed(values: Sequence[float], margin: float, alpha: float) -> int | None:
    """Return the total rounds until a verdict, at the present mean and spread.

    Returns None for more than MAX_FORECAST_ROUNDS, and without a spread.
    """
    if len(values) < MIN_VALUES:
        return None
    mean, deviation = fmean(values), stdev(values)
    if not deviation:
        return None

    def is_decided(rounds: int) -> bool:
        interval = interval_around(mean, deviation, rounds, alpha)
        return verdict(interval, margin) != CANNOT_TELL

    if not is_decided(MAX_FORECAST_ROUNDS):
        return None
    return _first_true(is_decided, len(values), MAX_FORECAST_ROUNDS)


def _first_true(is_decided: Callable[[int], bool], low: int, high: int) -> int:
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_decided(middle) else (middle + 1, high)
    return low
