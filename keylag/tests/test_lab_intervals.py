"""Intervals of means by Student's t, and of quantiles by the binomial distribution."""

import math
import random
from statistics import fmean

import pytest

from keylag.experiment.interval import Interval
from keylag.lab import intervals


def test_interval_of_a_mean_is_that_of_students_t() -> None:
    found = intervals.mean([1.0, 2.0, 3.0])

    assert found.mid == 2.0
    assert found.high - found.mid == pytest.approx(4.303 / math.sqrt(3), rel=0.001)
    assert found.mid - found.low == pytest.approx(found.high - found.mid)


@pytest.mark.parametrize("values", [[2.0], [2.0] * 9])
def test_mean_of_one_or_of_equal_values_has_no_interval(values: list[float]) -> None:
    assert intervals.mean(values) == Interval(-math.inf, 2.0, math.inf)


def test_ratios_have_a_geometric_mean() -> None:
    found = intervals.ratio([(1.0, 2.0), (2.0, 2.0), (4.0, 2.0)])

    assert found.mid == pytest.approx(1.0)
    assert found.low * found.high == pytest.approx(1.0)
    assert found.low < 0.5


def test_interval_of_a_median_is_two_of_the_values() -> None:
    # In tables of the sign test: the 2nd and the 9th of 10, the 40th and 61st of 100.
    assert intervals.median([*range(1, 11)]) == Interval(2, 5.5, 9)
    assert intervals.median([*range(1, 101)]) == Interval(40, 50.5, 61)


def test_quantile_is_unbounded_if_it_may_be_beyond_all_values() -> None:
    assert intervals.median([*range(5)]) == Interval(-math.inf, 2, math.inf)
    assert intervals.median([*range(6)]) == Interval(0, 2.5, 5)
    assert intervals.quantile([*range(71)], 0.95).high == math.inf
    assert intervals.quantile([*range(72)], 0.95).high == 71


def test_without_values_all_is_unknown() -> None:
    for found in (intervals.mean([]), intervals.median([]), intervals.ratio([])):
        assert math.isnan(found.low)
        assert math.isnan(found.mid)
        assert math.isnan(found.high)


def test_intervals_of_few_values_cover_what_they_should() -> None:
    order = random.Random(1)  # noqa: S311 - samples are no secret
    rounds = [[order.gauss(0, 1) for _ in range(5)] for _ in range(1000)]
    calls = [[order.expovariate(1) for _ in range(30)] for _ in range(1000)]

    means = [intervals.mean(one) for one in rounds]
    medians = [intervals.median(one) for one in calls]

    assert fmean(one.holds_zero for one in means) == pytest.approx(0.95, abs=0.02)
    assert fmean(one.low <= math.log(2) <= one.high for one in medians) >= 0.94
