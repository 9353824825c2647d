"""What an interval means, and how many rounds it still takes until it does."""

from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import Final

from keylag.experiment.confidence_sequence import MIN_VALUES, Interval, interval_around

FASTER: Final = "faster"
SLOWER: Final = "slower"
NO_DIFFERENCE: Final = "no difference that matters"
CANNOT_TELL: Final = "cannot tell yet"

MAX_FORECAST_ROUNDS: Final = 10_000
"""Beyond this many, nobody waits."""


def verdict(found: Interval, margin: float, *, higher_is_better: bool = False) -> str:
    """Judge a difference; inside `margin`, on both sides of zero, none matters.

    The interval as a whole decides: never its middle alone.  A figure that is always
    zero, of which no difference could be small, has none.  What is no number decides
    nothing.
    """
    none = found.low == found.high == 0
    if none or (-margin < found.low and found.high < margin):
        return NO_DIFFERENCE
    if found.low > 0:
        return FASTER if higher_is_better else SLOWER
    if found.high < 0:
        return SLOWER if higher_is_better else FASTER
    return CANNOT_TELL


def rounds_needed(values: Sequence[float], margin: float, alpha: float) -> int | None:
    """Return how many rounds in all it takes, if mean and spread stay as they are.

    None if that is more than MOST_BLOCKS, or cannot be guessed yet.
    """
    if len(values) < MIN_VALUES:
        return None
    mid, deviation = fmean(values), stdev(values)
    if not deviation:
        return None

    def is_decided(rounds: int) -> bool:
        return (
            verdict(interval_around(mid, deviation, rounds, alpha), margin)
            != CANNOT_TELL
        )

    if not is_decided(MAX_FORECAST_ROUNDS):
        return None
    return _first_true(is_decided, len(values), MAX_FORECAST_ROUNDS)


def _first_true(is_decided: Callable[[int], bool], low: int, high: int) -> int:
    """Return the least number for which it is clear, as it is from there on."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_decided(middle) else (middle + 1, high)
    return low
