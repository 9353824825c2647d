"""The edges of intervals and verdicts: where one answer becomes another."""

import math

import pytest

from keylag.experiment import verdicts
from keylag.experiment.sequence import Interval, interval, reach
from keylag.experiment.verdicts import (
    CANNOT_TELL,
    FASTER,
    NO_DIFFERENCE,
    SLOWER,
    blocks_needed,
    verdict,
)

LAST_INFINITE = math.nextafter(1 / math.sqrt(5.5), 1)
"""The largest alpha with which the interval of two blocks is infinite."""


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-1.99, 1.99, NO_DIFFERENCE),
        (-2, 1, CANNOT_TELL),
        (-1, 2, CANNOT_TELL),
        (0, 3, CANNOT_TELL),
        (0.01, 3, SLOWER),
        (-3, 0, CANNOT_TELL),
        (-3, -0.01, FASTER),
        (0, 0, NO_DIFFERENCE),
        (2, 2, SLOWER),
        (-2, -2, FASTER),
    ],
)
def test_an_end_on_the_margin_or_on_zero_decides_nothing(
    low: float, high: float, expected: str
) -> None:
    """With a margin of 2 on either side, which is itself a difference."""
    assert verdict(Interval(low, (low + high) / 2, high), 2) == expected


@pytest.mark.parametrize("least", range(3, 41))
def test_the_search_finds_the_first_clear_number(least: int) -> None:
    """Wherever it is between the ends, both included."""
    assert verdicts._first(lambda blocks: blocks >= least, 3, 40) == least


def test_two_blocks_are_enough_for_a_guess() -> None:
    """They have a spread; what one block needs cannot be guessed."""
    needed = blocks_needed([0.02, 0.021], 0.01, 0.05)

    assert needed is not None
    assert 2 < needed < 10
    assert blocks_needed([0.02], 0.01, 0.05) is None


def test_a_guess_is_never_below_the_blocks_there_are() -> None:
    """What is clear already needs no block more."""
    assert blocks_needed([0.02, 0.021] * 20, 0.01, 0.05) == 40


def test_the_fewest_blocks_that_have_an_interval() -> None:
    """Two, if one accepts to be wrong often enough; never one."""
    assert math.isfinite(reach(2, 0.5))
    assert math.isinf(reach(2, LAST_INFINITE))
    assert math.isfinite(reach(2, LAST_INFINITE + 1e-9))
    assert math.isinf(reach(1, 0.99))

    found = interval([1.0, 3.0], 0.5)

    assert found.mid == 2
    assert found.high == pytest.approx(2 + math.sqrt(2) * reach(2, 0.5))
    assert found.low == pytest.approx(2 - math.sqrt(2) * reach(2, 0.5))


def test_few_values_without_spread_say_nothing_either() -> None:
    """Three equal values are as few as any three."""
    assert interval([6.0] * 3, 0.05) == Interval(-math.inf, 6.0, math.inf)


def test_an_interval_in_another_unit_has_all_three_in_it() -> None:
    """Seconds to milliseconds."""
    assert Interval(-1.0, 2.0, 4.0).scaled(1000) == Interval(-1000, 2000, 4000)
