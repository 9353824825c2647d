"""What an interval means, and how many blocks it still takes until it does."""

from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import Final

from keylag.experiment.sequence import FEWEST, Interval, around

FASTER: Final = "faster"
SLOWER: Final = "slower"
NO_DIFFERENCE: Final = "no difference that matters"
CANNOT_TELL: Final = "cannot tell yet"

MOST_BLOCKS: Final = 10_000
"""Beyond this many, nobody waits."""


def verdict(found: Interval, margin: float, *, more_is_better: bool = False) -> str:
    """Judge a difference; inside `margin`, on both sides of zero, none matters.

    The interval as a whole decides: never its middle alone.  A figure that is always
    zero, of which no difference could be small, has none.  What is no number decides
    nothing.
    """
    none = found.low == found.high == 0
    if none or (-margin < found.low and found.high < margin):
        return NO_DIFFERENCE
    if found.low > 0:
        return FASTER if more_is_better else SLOWER
    if found.high < 0:
        return SLOWER if more_is_better else FASTER
    return CANNOT_TELL


def blocks_needed(values: Sequence[float], margin: float, alpha: float) -> int | None:
    """Return how many blocks in all it takes, if mean and spread stay as they are.

    None if that is more than MOST_BLOCKS, or cannot be guessed yet.
    """
    if len(values) < FEWEST:
        return None
    mid, deviation = fmean(values), stdev(values)
    if not deviation:
        return None

    def clear(blocks: int) -> bool:
        return verdict(around(mid, deviation, blocks, alpha), margin) != CANNOT_TELL

    if not clear(MOST_BLOCKS):
        return None
    return _first(clear, len(values), MOST_BLOCKS)


def _first(clear: Callable[[int], bool], low: int, high: int) -> int:
    """Return the least number for which it is clear, as it is from there on."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if clear(middle) else (middle + 1, high)
    return low
