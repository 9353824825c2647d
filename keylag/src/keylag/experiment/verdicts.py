"""Verdicts on intervals, and the number of rounds until a verdict."""

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from keylag.experiment.estimates import Estimate
from keylag.experiment.interval import Interval

FASTER: Final = "faster"
SLOWER: Final = "slower"
NO_DIFFERENCE: Final = "no difference that matters"
CANNOT_TELL: Final = "cannot tell yet"
FAILS: Final = "fails"
"""Of an arm without a successful request."""
CONTROL: Final = "control"
"""Of a part that no arm changes."""


def verdict(
    own: Interval,
    margin: float,
    *,
    shared: Interval | None = None,
    higher_is_better: bool = False,
) -> str:
    """Judge a difference by its whole interval.

    - An interval within `margin` on both sides of zero is no difference that matters;
      so is a figure that is always zero.
    - An interval on one side of zero is faster or slower.  All comparisons share the
      error probability of such claims, so theirs is the wider interval `shared`.
    - Everything else, NaN included, is cannot tell.
    """
    always_zero = own.low == own.high == 0
    if always_zero or (-margin < own.low and own.high < margin):
        return NO_DIFFERENCE
    claim = shared or own
    if claim.low > 0:
        return FASTER if higher_is_better else SLOWER
    if claim.high < 0:
        return SLOWER if higher_is_better else FASTER
    return CANNOT_TELL


def rounds_needed(
    estimate: Estimate, judge: Callable[[Estimate], str], *lasts: int
) -> int | None:
    """Return the total rounds until a verdict, at the present mean and spread.

    Searches up to each of `lasts` in turn: up to the end of a plan, and beyond it,
    where intervals are wider at first.  Returns None without a spread, and for more.
    """

    def is_decided(rounds: int) -> bool:
        return judge(estimate.after(rounds)) != CANNOT_TELL

    if math.isinf(estimate.standard_error):
        return None
    first = estimate.rounds
    for last in lasts:
        if first <= last and is_decided(last):
            possible = range(first, last + 1)
            return possible[bisect_left(possible, x=True, key=is_decided)]
        first = max(first, last + 1)
    return None
