"""What is claimed of a difference, and what is not: exact figures and hostile ones."""

import math
from math import inf, nan
from statistics import fmean, stdev

import pytest

from keylag.experiment.confidence_sequence import (
    MIXTURE_SD,
    Interval,
    confidence_interval,
    half_width_in_sd,
    interval_around,
)
from keylag.experiment.verdicts import (
    CANNOT_TELL,
    FASTER,
    MAX_FORECAST_ROUNDS,
    NO_DIFFERENCE,
    SLOWER,
    rounds_needed,
    verdict,
)

# Where a mean lies.


@pytest.mark.parametrize(
    ("rounds", "alpha", "expected"),
    [(4, 0.05, 5.0468), (10, 0.05, 1.2275), (10, 0.025, 1.3836), (100, 0.05, 0.3468)],
)
def test_the_reach_of_an_interval(rounds: int, alpha: float, expected: float) -> None:
    """In deviations, as solved by halving from the martingale of the docstring."""
    scale = 1 + rounds * MIXTURE_SD**2

    def log_martingale(half_width: float) -> float:
        squared = half_width**2 * rounds / (rounds - 1)
        ratio = (1 + squared) / (1 + squared / scale)
        return rounds / 2 * math.log(ratio) - math.log(scale) / 2

    low, high = 0.0, 1000.0
    for _ in range(100):
        middle = (low + high) / 2
        below = log_martingale(middle) < -math.log(alpha)
        low, high = (middle, high) if below else (low, middle)

    assert half_width_in_sd(rounds, alpha) == pytest.approx(low)
    assert half_width_in_sd(rounds, alpha) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_few_blocks_reach_everywhere(rounds: int) -> None:
    """At 95 %; at a lower level fewer rounds say something."""
    assert half_width_in_sd(rounds, 0.05) == inf


def test_two_blocks_may_say_something() -> None:
    """At 50 % they do; one never does, at no level."""
    assert half_width_in_sd(2, 0.5) < inf
    assert half_width_in_sd(1, 0.99) == inf


def test_a_level_that_cannot_be_reached_has_no_end() -> None:
    """Exactly where the martingale's limit is one in alpha, too."""
    alpha = (1 + 2 * MIXTURE_SD**2) ** -0.5

    assert half_width_in_sd(2, alpha) == inf
    assert half_width_in_sd(2, 1.01 * alpha) < inf


def test_an_interval_is_around_the_mean() -> None:
    """As many deviations of a round each way as it reaches."""
    values = [1.0, 2.0, 4.0, 3.0, 5.5]
    half_width = half_width_in_sd(5, 0.05) * stdev(values)
    found = confidence_interval(values, 0.05)

    assert found == Interval(
        fmean(values) - half_width, fmean(values), fmean(values) + half_width
    )
    assert interval_around(1.0, 2.0, 5, 0.05).high == 1 + 2 * half_width_in_sd(5, 0.05)
    assert found.scaled(2) == Interval(2 * found.low, 2 * found.mid, 2 * found.high)


def test_a_block_without_spread_of_too_few_has_no_interval() -> None:
    """Zero deviations infinitely far are not a number."""
    assert interval_around(1.0, 0.0, 3, 0.05) == Interval(-inf, 1.0, inf)
    assert confidence_interval([1.0, 1.0], 0.05, exact=True) == Interval(-inf, 1.0, inf)


def test_two_values_have_a_spread() -> None:
    """Which is enough where two rounds say something."""
    assert confidence_interval([1.0, 2.0], 0.5) == interval_around(
        1.5, stdev([1.0, 2.0]), 2, 0.5
    )
    assert confidence_interval([1.0, 2.0], 0.5).high < inf


def test_one_value_has_no_interval() -> None:
    """Whether it was counted or measured."""
    for exact in (True, False):
        assert confidence_interval([1.0], 0.05, exact=exact) == Interval(-inf, 1.0, inf)


def test_times_that_are_all_alike_have_no_interval() -> None:
    """Whole milliseconds hide how far they spread; counts have nothing to hide."""
    assert confidence_interval([0.001] * 50, 0.05) == Interval(-inf, 0.001, inf)
    assert confidence_interval([0.0] * 50, 0.05) == Interval(-inf, 0.0, inf)
    assert confidence_interval([6.0] * 50, 0.05, exact=True) == Interval(6.0, 6.0, 6.0)


# What it means.


@pytest.mark.parametrize(
    ("low", "high"), [(nan, nan), (nan, 5.0), (-5.0, nan), (nan, inf), (-inf, nan)]
)
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_what_is_no_number_decides_nothing(
    low: float, high: float, *, higher_is_better: bool
) -> None:
    """Every comparison with it is false; no verdict may rest on that."""
    found = Interval(low, nan, high)

    assert verdict(found, 0.1, higher_is_better=higher_is_better) == CANNOT_TELL


@pytest.mark.parametrize(
    ("low", "high", "margin", "expected"),
    [
        (-1, 1, 1, CANNOT_TELL),
        (-0.99, 0.99, 1, NO_DIFFERENCE),
        (-1, 0.5, 1, CANNOT_TELL),
        (-0.5, 1, 1, CANNOT_TELL),
        (0, 1, 1, CANNOT_TELL),
        (-1, 0, 1, CANNOT_TELL),
        (0.001, 1, 1, SLOWER),
        (-1, -0.001, 1, FASTER),
        (0.1, 0.9, 1, NO_DIFFERENCE),
        (-0.9, -0.1, 1, NO_DIFFERENCE),
        (0, 0, 0, NO_DIFFERENCE),
        (0, 0, nan, NO_DIFFERENCE),
        (0, 0.1, 0, CANNOT_TELL),
        (-0.1, 0, 0, CANNOT_TELL),
        (0.1, 0.1, 0, SLOWER),
        (-0.1, -0.1, 0, FASTER),
        (-inf, inf, inf, CANNOT_TELL),
    ],
)
def test_ends_that_touch_decide_nothing(
    low: float, high: float, margin: float, expected: str
) -> None:
    """Neither those at zero nor those at the margin."""
    assert verdict(Interval(low, 0.0, high), margin) == expected


# How long it still takes.


def test_the_words_of_verdicts() -> None:
    """Reports, pages and programs read them."""
    assert (FASTER, SLOWER) == ("faster", "slower")
    assert NO_DIFFERENCE == "no difference that matters"
    assert CANNOT_TELL == "cannot tell yet"


@pytest.mark.parametrize(
    ("values", "margin", "expected"),
    [
        ([0.0, 0.02, 0.04], 0.01, 14),
        ([-0.01, 0.0, 0.01], 0.02, 6),
        ([1.0, 2.0], 0.1, 6),
    ],
)
def test_the_blocks_that_are_needed(
    values: list[float], margin: float, expected: int
) -> None:
    """The least number whose interval is clear, and it stays so from there on."""
    mid, spread = fmean(values), stdev(values)
    clear = [
        verdict(interval_around(mid, spread, n, 0.05), margin) != CANNOT_TELL
        for n in range(1, 200)
    ]

    assert rounds_needed(values, margin, 0.05) == clear.index(True) + 1 == expected
    assert all(clear[expected:])


def test_what_is_clear_already_needs_no_more() -> None:
    """As many as there are, were they fewer that it takes."""
    values = [1.0, 1.1] * 20

    assert rounds_needed(values, 0.1, 0.05) == 40


def test_nobody_waits_for_ten_thousand_blocks() -> None:
    """Just as many can be said, and one more cannot."""
    spread = 1 / half_width_in_sd(MAX_FORECAST_ROUNDS, 0.05)
    below, above = (
        [1.0 - f * spread * math.sqrt(0.5), 1.0 + f * spread * math.sqrt(0.5)]
        for f in (0.9999, 1.0001)
    )

    assert MAX_FORECAST_ROUNDS == 10_000
    assert rounds_needed(below, 0.0, 0.05) in range(9_900, 10_001)
    assert rounds_needed(above, 0.0, 0.05) is None


def test_nothing_is_guessed_from_values_without_spread() -> None:
    """One value has none; equal ones were rounded."""
    assert rounds_needed([1.0], 0.1, 0.05) is None
    assert rounds_needed([1.0, 1.0, 1.0], 0.1, 0.05) is None
