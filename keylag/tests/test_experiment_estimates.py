"""Estimates over rounds, with and without a control, and ratios."""

import math
from random import Random
from statistics import fmean, stdev

import pytest
from scipy import stats

from keylag.experiment.estimates import estimate_mean, explained_share
from keylag.experiment.interval import Interval
from keylag.experiment.ratios import contributions, log_ratios, logarithmic_mean

VALUES = [1.0, 2.0, 4.0, 3.0, 5.5]
CONTROL = [0.5, -1.0, 2.0, 0.0, 1.0]


def test_estimate_without_control_is_the_mean_with_its_standard_error() -> None:
    found = estimate_mean(VALUES)

    assert found.mean == pytest.approx(fmean(VALUES))
    assert found.standard_error == pytest.approx(stdev(VALUES) / math.sqrt(5))
    assert (found.degrees_of_freedom, found.rounds) == (4, 5)


def test_estimate_with_control_is_the_intercept_of_a_regression() -> None:
    found, expected = estimate_mean(VALUES, CONTROL), stats.linregress(CONTROL, VALUES)

    assert found.mean == pytest.approx(expected.intercept)
    assert found.standard_error == pytest.approx(expected.intercept_stderr)
    assert found.degrees_of_freedom == 3


def test_control_that_never_varies_explains_nothing() -> None:
    assert estimate_mean(VALUES, [0.3] * 5) == estimate_mean(VALUES)
    assert explained_share(VALUES, [0.3] * 5) == 0
    assert explained_share(VALUES, VALUES) == pytest.approx(1)


@pytest.mark.parametrize("values", [[1.0], [0.001] * 50, [0.0] * 50])
def test_one_value_and_equal_values_have_no_standard_error(values: list[float]) -> None:
    assert estimate_mean(values).standard_error == math.inf


def test_more_rounds_make_the_error_smaller() -> None:
    found = estimate_mean(VALUES, CONTROL).after(20)

    assert found.standard_error == pytest.approx(
        estimate_mean(VALUES, CONTROL).standard_error / 2
    )
    assert (found.degrees_of_freedom, found.rounds) == (18, 20)


def test_control_covers_the_true_difference() -> None:
    """Noise of the control that is in the values widens no interval."""
    covered = narrower = 0
    for seed in range(400):
        choice = Random(seed)  # noqa: S311 - it has to repeat
        control = [choice.gauss(0, 5) for _ in range(8)]
        values = [1 + one + choice.gauss(0, 1) for one in control]
        found = estimate_mean(values, control)
        covered += abs(found.mean - 1) < stats.t.isf(0.025, 6) * found.standard_error
        narrower += found.standard_error < estimate_mean(values).standard_error / 2

    assert narrower > 360
    assert 0.925 < covered / 400 < 0.975


def test_contributions_of_parts_add_up_to_the_ratio_of_the_whole() -> None:
    parts = {"sql": ([3.0, 2.0], [0.0, 2.5]), "hash": ([7.0, 6.0], [7.5, 6.0])}
    whole = ([10.0, 8.0], [7.5, 8.5])
    found = [contributions(part, whole) for part in parts.values()]

    assert [math.fsum(one) for one in zip(*found, strict=True)] == pytest.approx(
        log_ratios(*whole)
    )


def test_logarithmic_mean_is_between_both_numbers() -> None:
    assert logarithmic_mean(2.0, 2.0) == 2
    assert 2 < logarithmic_mean(2.0, 3.0) == logarithmic_mean(3.0, 2.0) < 2.5
    assert logarithmic_mean(1.0, 1.0 + 1e-15) == pytest.approx(1)


def test_interval_at_least_keeps_its_estimate() -> None:
    found = Interval(-5.0, -1.0, 3.0)

    assert found.at_least(-2.0) == Interval(-2.0, -1.0, 3.0)
    assert found.at_least(0.0) == Interval(-1.0, -1.0, 3.0)
    assert found.holds_zero
    assert not found.mapped(math.exp).holds_zero
