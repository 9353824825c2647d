"""Confidence intervals and verdicts: exact figures and extreme input."""

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

# Intervals.


@pytest.mark.parametrize(
    ("rounds", "alpha", "expected"),
    [(4, 0.05, 5.0468), (10, 0.05, 1.2275), (10, 0.025, 1.3836), (100, 0.05, 0.3468)],
)
def test_half_width_solves_the_martingale(
    rounds: int, alpha: float, expected: float
) -> None:
    """Against a bisection of the formula in the module's docstring."""
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
def test_half_width_is_infinite_below_four_rounds(rounds: int) -> None:
    assert half_width_in_sd(rounds, 0.05) == inf


def test_two_rounds_have_a_finite_half_width_at_50_percent() -> None:
    assert half_width_in_sd(2, 0.5) < inf
    assert half_width_in_sd(1, 0.99) == inf


def test_half_width_is_infinite_at_the_limit_of_the_martingale() -> None:
    alpha = (1 + 2 * MIXTURE_SD**2) ** -0.5

    assert half_width_in_sd(2, alpha) == inf
    assert half_width_in_sd(2, 1.01 * alpha) < inf


def test_interval_is_symmetric_around_the_mean() -> None:
    values = [1.0, 2.0, 4.0, 3.0, 5.5]
    half_width = half_width_in_sd(5, 0.05) * stdev(values)
    found = confidence_interval(values, 0.05)

    assert found == Interval(
        fmean(values) - half_width, fmean(values), fmean(values) + half_width
    )
    assert interval_around(1.0, 2.0, 5, 0.05).high == 1 + 2 * half_width_in_sd(5, 0.05)
    assert found.scaled(2) == Interval(2 * found.low, 2 * found.mid, 2 * found.high)


def test_zero_spread_of_too_few_values_has_infinite_interval() -> None:
    """Zero times an infinite half width would be NaN."""
    assert interval_around(1.0, 0.0, 3, 0.05) == Interval(-inf, 1.0, inf)
    assert confidence_interval([1.0, 1.0], 0.05, exact=True) == Interval(-inf, 1.0, inf)


def test_two_values_have_a_finite_interval_at_50_percent() -> None:
    assert confidence_interval([1.0, 2.0], 0.5) == interval_around(
        1.5, stdev([1.0, 2.0]), 2, 0.5
    )
    assert confidence_interval([1.0, 2.0], 0.5).high < inf


def test_one_value_has_an_infinite_interval() -> None:
    for exact in (True, False):
        assert confidence_interval([1.0], 0.05, exact=exact) == Interval(-inf, 1.0, inf)


def test_equal_times_have_infinite_interval_unless_exact() -> None:
    assert confidence_interval([0.001] * 50, 0.05) == Interval(-inf, 0.001, inf)
    assert confidence_interval([0.0] * 50, 0.05) == Interval(-inf, 0.0, inf)
    assert confidence_interval([6.0] * 50, 0.05, exact=True) == Interval(6.0, 6.0, 6.0)


# Verdicts.


@pytest.mark.parametrize(
    ("low", "high"), [(nan, nan), (nan, 5.0), (-5.0, nan), (nan, inf), (-inf, nan)]
)
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_nan_gives_no_verdict(
    low: float, high: float, *, higher_is_better: bool
) -> None:
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
def test_interval_that_touches_zero_or_margin_gives_no_verdict(
    low: float, high: float, margin: float, expected: str
) -> None:
    assert verdict(Interval(low, 0.0, high), margin) == expected


# Forecasts.


def test_texts_of_verdicts_are_stable() -> None:
    """Reports and programs read them."""
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
def test_rounds_needed_is_the_first_decided_number(
    values: list[float], margin: float, expected: int
) -> None:
    mid, spread = fmean(values), stdev(values)
    clear = [
        verdict(interval_around(mid, spread, n, 0.05), margin) != CANNOT_TELL
        for n in range(1, 200)
    ]

    assert rounds_needed(values, margin, 0.05) == clear.index(True) + 1 == expected
    assert all(clear[expected:])


def test_decided_values_need_no_more_rounds() -> None:
    values = [1.0, 1.1] * 20

    assert rounds_needed(values, 0.1, 0.05) == 40


def test_more_than_ten_thousand_rounds_are_not_forecast() -> None:
    spread = 1 / half_width_in_sd(MAX_FORECAST_ROUNDS, 0.05)
    below, above = (
        [1.0 - f * spread * math.sqrt(0.5), 1.0 + f * spread * math.sqrt(0.5)]
        for f in (0.9999, 1.0001)
    )

    assert MAX_FORECAST_ROUNDS == 10_000
    assert rounds_needed(below, 0.0, 0.05) in range(9_900, 10_001)
    assert rounds_needed(above, 0.0, 0.05) is None


def test_rounds_needed_is_none_without_spread() -> None:
    assert rounds_needed([1.0], 0.1, 0.05) is None
    assert rounds_needed([1.0, 1.0, 1.0], 0.1, 0.05) is None
