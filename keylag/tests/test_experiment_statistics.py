"""Statistics of experiments on values with known results."""

import math
from random import Random
from statistics import stdev

import pytest

from keylag.experiment.confidence_sequence import (
    MIXTURE_SD,
    Interval,
    confidence_interval,
    half_width_in_sd,
    interval_around,
)
from keylag.experiment.measures import grouped_quantile, measure_round
from keylag.experiment.samples import Row
from keylag.experiment.verdicts import (
    CANNOT_TELL,
    FASTER,
    NO_DIFFERENCE,
    SLOWER,
    rounds_needed,
    verdict,
)


def martingale(values: list[float]) -> float:
    """Return Rouder's Bayes factor for a normal mixture of effects."""
    n = len(values)
    t = math.fsum(values) / n / (stdev(values) / math.sqrt(n))
    scale = 1 + n * MIXTURE_SD**2
    top, bottom = 1 + t**2 / (n - 1), 1 + t**2 / ((n - 1) * scale)
    return math.sqrt(1 / scale) * (top / bottom) ** (n / 2)


def test_interval_ends_where_the_martingale_reaches_one_in_alpha() -> None:
    """The closed form agrees with the formula that it solves."""
    choice = Random(4)  # noqa: S311 - it has to repeat
    values = [choice.gauss(3, 1) for _ in range(9)]
    low = confidence_interval(values, 0.05).low

    assert martingale([value - low for value in values]) == pytest.approx(20)


def test_sequence_keeps_its_error_rate_when_checked_after_every_round() -> None:
    """A t interval that is checked after every value errs several times as often."""
    wrong = usual = 0
    for seed in range(200):
        choice = Random(seed)  # noqa: S311 - it has to repeat
        values = [choice.gauss(0, 1) for _ in range(40)]
        looks = [confidence_interval(values[:n], 0.05) for n in range(5, 41)]
        wrong += any(not one.low <= 0 <= one.high for one in looks)
        usual += any(
            abs(one.mid) > 2.1 * stdev(values[:n]) / math.sqrt(n)
            for n, one in enumerate(looks, start=5)
        )

    assert wrong <= 10
    assert usual > 40


def test_interval_is_finite_from_four_values_on() -> None:
    assert math.isinf(half_width_in_sd(3, 0.05))
    assert math.isfinite(half_width_in_sd(4, 0.05))
    assert confidence_interval([1.0], 0.05) == Interval(-math.inf, 1.0, math.inf)


def test_equal_exact_values_have_zero_width() -> None:
    assert confidence_interval([6.0] * 5, 0.05, exact=True) == Interval(6.0, 6.0, 6.0)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-9, -3, FASTER),
        (-9, -0.5, FASTER),
        (-1, 1, NO_DIFFERENCE),
        (0.5, 1.5, NO_DIFFERENCE),
        (-3, 1, CANNOT_TELL),
        (-math.inf, math.inf, CANNOT_TELL),
        (0.5, 3, SLOWER),
    ],
)
def test_verdict_needs_the_whole_interval_on_one_side(
    low: float, high: float, expected: str
) -> None:
    """With a margin of 2."""
    found = Interval(low, 0.0, high)

    assert verdict(found, 2) == expected
    assert verdict(Interval(0.0, 0.0, 0.0), 0) == NO_DIFFERENCE
    swapped = {FASTER: SLOWER, SLOWER: FASTER}.get(expected, expected)
    assert verdict(found, 2, higher_is_better=True) == swapped


def test_verdict_changes_at_the_number_of_rounds_needed() -> None:
    values = [0.0, 0.02, 0.04]
    needed = rounds_needed(values, 0.01, 0.05)

    assert needed is not None
    mid, spread = 0.02, stdev(values)
    assert verdict(interval_around(mid, spread, needed, 0.05), 0.01) == SLOWER
    assert verdict(interval_around(mid, spread, needed - 1, 0.05), 0.01) == CANNOT_TELL


def test_rounds_needed_is_none_without_margin_or_spread() -> None:
    assert rounds_needed([-1.0, 1.0], 0.0, 0.05) is None
    assert rounds_needed([1.0], 0.1, 0.05) is None


def test_grouped_quantile_interpolates_within_a_millisecond() -> None:
    """Of three requests of 5 ms and one of 6 ms, the median is two thirds into 5 ms."""
    assert grouped_quantile([0.005] * 3 + [0.006], 0.5) == pytest.approx(
        0.0045 + 0.001 * 2 / 3
    )
    assert grouped_quantile([0.007], 1.0) == pytest.approx(0.0075)


def test_grouped_quantile_resolves_a_tenth_of_a_millisecond() -> None:
    choice = Random(8)  # noqa: S311 - it has to repeat

    def counted(mean: float) -> float:
        """Count as JMeter does: the difference of two clocks' whole milliseconds."""
        starts = [choice.random() for _ in range(20_000)]
        ends = [start + choice.gauss(mean, 0.4) for start in starts]
        taken = zip(starts, ends, strict=True)
        return grouped_quantile([int(e) / 1000 - int(s) / 1000 for s, e in taken], 0.5)

    assert counted(5.1) - counted(5.0) == pytest.approx(0.0001, abs=0.00004)


def a_row(latency: float, **measured: float) -> Row:
    """Return a successful request."""
    return Row(
        round=0,
        position=0,
        arm="a",
        start_seconds=10.0,
        method="GET",
        code="200",
        success=True,
        warm_up=False,
        latency_seconds=latency,
        server_timing=measured,
    )


def test_time_outside_keystone_completes_the_mean() -> None:
    rows = [a_row(0.010, total=0.008, sql=0.006, cache=0.002) for _ in range(5)]
    found = measure_round(rows, 0.01)

    assert found is not None
    assert found["mean"] == pytest.approx(0.010)
    assert found["outside"] == pytest.approx(0.002)
    assert found["throughput"] == pytest.approx(500)


def test_four_requests_give_no_figures_and_missing_timing_no_parts() -> None:
    assert measure_round([a_row(0.010)] * 4, 1) is None
    assert "sql" not in (measure_round([a_row(0.010)] * 5, 1) or {})
