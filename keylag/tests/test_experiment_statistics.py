"""Statistics of experiments on values with known results."""

import math
from random import Random

import pytest

from keylag.experiment.interval import Interval
from keylag.experiment.measures import grouped_quantile, measure_round
from keylag.experiment.samples import Row
from keylag.experiment.verdicts import (
    CANNOT_TELL,
    FASTER,
    NO_DIFFERENCE,
    SLOWER,
    verdict,
)


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
    assert measure_round([a_row(0.0)] * 5, 1) is None
    assert measure_round([a_row(0.001)] * 5, 1) is not None
    assert "sql" not in (measure_round([a_row(0.010)] * 5, 1) or {})
