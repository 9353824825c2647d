"""Verdicts and forecasts: exact figures and extreme input."""

import math
from math import inf, nan

import pytest

from keylag.experiment.estimates import Estimate
from keylag.experiment.interval import Interval
from keylag.experiment.verdicts import (
    CANNOT_TELL,
    FASTER,
    NO_DIFFERENCE,
    SLOWER,
    rounds_needed,
    verdict,
)


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


def test_claims_use_the_shared_interval_and_no_difference_its_own() -> None:
    own = Interval(0.5, 2.0, 3.5)

    assert verdict(own, 1) == SLOWER
    assert verdict(own, 1, shared=Interval(-0.5, 2.0, 4.5)) == CANNOT_TELL
    assert verdict(own, 4, shared=Interval(-0.5, 2.0, 4.5)) == NO_DIFFERENCE


def judge(estimate: Estimate) -> str:
    """Return the verdict on an interval of two standard errors."""
    width = 2 * estimate.standard_error
    mean = estimate.mean
    return verdict(Interval(mean - width, mean, mean + width), 0.01)


@pytest.mark.parametrize(
    ("mean", "expected"), [(0.021, 9), (0.0, 37), (0.1, 5), (0.0101, 36)]
)
def test_rounds_needed_is_the_first_decided_number(mean: float, expected: int) -> None:
    """The standard error of one round is 0.03, so two of n are 0.06 / sqrt(n)."""
    now = Estimate(mean, 0.03 / math.sqrt(5), 4, 5)

    assert rounds_needed(now, judge, 100) == expected
    assert judge(now.after(expected)) != CANNOT_TELL
    assert expected == 5 or judge(now.after(expected - 1)) == CANNOT_TELL


def test_rounds_needed_are_those_of_the_plan_if_intervals_are_wider_beyond_it() -> None:
    now = Estimate(0.021, 0.03 / math.sqrt(5), 4, 5)

    def wider_beyond_10(estimate: Estimate) -> str:
        return judge(estimate) if estimate.rounds <= 10 else CANNOT_TELL

    assert rounds_needed(now, wider_beyond_10, 10, 100) == 9
    assert rounds_needed(now, wider_beyond_10, 8, 100) is None


def test_rounds_needed_is_none_beyond_the_last_and_without_spread() -> None:
    now = Estimate(0.0, 0.03 / math.sqrt(5), 4, 5)

    assert rounds_needed(now, judge, 36) is None
    assert rounds_needed(Estimate(0.0, math.inf, 0, 1), judge, 100) is None
