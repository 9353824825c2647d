"""Ratios and intervals on rounds with known results."""

import math
from random import Random

import numpy as np
import pytest
from scipy import stats

from keylag_bench.intervals import (
    Interval,
    bootstrap_interval,
    bootstrap_standard_error,
    complete_rounds,
    ratio_statistic,
    share_statistic,
    total_seconds,
)
from keylag_bench.raw_results import Row

ARMS = ("bare", "keylag")
UNKNOWN = (-math.inf, math.inf)


def a_row(restart: int, round_number: int, arm: str, seconds: float) -> Row:
    """Return a row whose wall time is twice its CPU time."""
    return Row("w", restart, round_number, arm, 10, seconds, 2 * seconds)


def noisy_rounds(
    choice: Random, restarts: int, rounds: int, between: float, within: float
) -> list[list[dict[str, float]]]:
    """Return rounds with a true ratio of 1.05, and noise within and between restarts.

    The speed of the machine, equal for both arms, varies by a tenth between restarts.
    """
    return [
        [
            {"bare": speed, "keylag": speed * (1.05 + shift + choice.gauss(0, within))}
            for _ in range(rounds)
        ]
        for shift, speed in [
            (choice.gauss(0, between), math.exp(choice.gauss(0, 0.1)))
            for _ in range(restarts)
        ]
    ]


def test_incomplete_rounds_and_empty_restarts_are_left_out() -> None:
    rows = [
        a_row(0, 0, "bare", 1.0),
        a_row(0, 0, "keylag", 2.0),
        a_row(0, 1, "bare", 3.0),
        a_row(1, 0, "keylag", 4.0),
    ]

    assert complete_rounds(rows, lambda row: row.cpu_seconds, ARMS) == [
        [{"bare": 1.0, "keylag": 2.0}]
    ]
    assert complete_rounds(rows[:2], lambda row: row.wall_seconds, ARMS) == [
        [{"bare": 2.0, "keylag": 4.0}]
    ]


def test_ratio_is_that_of_total_seconds() -> None:
    """5 / 4, not the mean of the ratios of rounds."""
    restarts = [[{"bare": 1.0, "keylag": 2.0}], [{"bare": 3.0, "keylag": 3.0}]]

    assert total_seconds(restarts) == {"bare": 4.0, "keylag": 5.0}
    assert bootstrap_interval(ratio_statistic("keylag"), restarts, 1).mid == 5 / 4


def test_arms_are_compared_with_both_bare_arms_and_control_with_the_base() -> None:
    seconds = {"bare": 1.0, "bare_again": 3.0, "keylag": 3.0, "otel": 6.0}

    assert ratio_statistic("keylag")(seconds) == 1.5
    assert ratio_statistic("bare_again")(seconds) == 3.0
    assert ratio_statistic("bare")(seconds) == 1.0
    assert share_statistic("keylag", "otel")(seconds) == 0.25


def test_ratio_to_a_named_arm_uses_that_arm_alone() -> None:
    seconds = {"bare": 1.0, "bare_again": 3.0, "keylag": 4.0, "keylag_python": 5.0}

    assert ratio_statistic("keylag_python", "keylag")(seconds) == 1.25
    assert ratio_statistic("bare_again", "keylag")(seconds) == 0.75


def test_equal_restarts_have_zero_width() -> None:
    restarts = [[{"bare": 2.0, "keylag": 3.0}] * 4] * 3

    assert bootstrap_interval(ratio_statistic("keylag"), restarts, 1) == Interval(
        1.5, 1.5, 1.5
    )


@pytest.mark.parametrize("rounds", [1, 4, 100])
def test_one_restart_has_an_infinite_interval(rounds: int) -> None:
    restarts = noisy_rounds(Random(3), 1, rounds, 0.01, 0.01)

    found = bootstrap_interval(ratio_statistic("keylag"), restarts, 1)

    assert (found.low, found.high) == UNKNOWN
    assert found.mid == pytest.approx(1.05, abs=0.05)
    assert found.as_text() == f"{found.mid:.3f} (no interval)"
    assert found.as_list() == [None, found.mid, None]


@pytest.mark.parametrize("restarts", [2, 3, 6, 12])
def test_interval_of_a_mean_is_that_of_the_t_test(restarts: int) -> None:
    """With a constant base, the ratio is a mean."""
    values = [1.05, 1.01, 1.09, 1.02, 1.05, 1.04] * 2
    known = [[{"bare": 0.5, "keylag": value / 2}] * 2 for value in values[:restarts]]

    found = bootstrap_interval(ratio_statistic("keylag"), known, 1, 20_000)

    low, high = stats.t.interval(
        0.95,
        restarts - 1,
        np.mean(values[:restarts]),
        stats.sem(values[:restarts]),
    )
    assert found.mid == pytest.approx(np.mean(values[:restarts]))
    assert found.width == pytest.approx(high - low, rel=0.03)
    assert found.high - found.mid == pytest.approx(found.mid - found.low)


def test_variance_within_a_restart_adds_no_error() -> None:
    """Resampled rounds would add some."""
    apart = [[{"bare": 1.0, "keylag": 1.0}, {"bare": 1.0, "keylag": 3.0}]] * 5
    alike = [[{"bare": 2.0, "keylag": 4.0}]] * 5

    for restarts in (apart, alike):
        assert bootstrap_standard_error(ratio_statistic("keylag"), restarts, 1) == 0.0


def test_speed_of_a_restart_cancels_between_arms() -> None:
    restarts = [[{"bare": speed, "keylag": 1.05 * speed}] for speed in (1.0, 2.0, 7.0)]

    found = bootstrap_interval(ratio_statistic("keylag"), restarts, 1)

    assert found.as_list() == pytest.approx([1.05] * 3)


def test_seed_decides_the_interval() -> None:
    restarts = noisy_rounds(Random(3), 4, 5, 0.01, 0.01)

    first = bootstrap_interval(ratio_statistic("keylag"), restarts, 1)

    assert first == bootstrap_interval(ratio_statistic("keylag"), restarts, 1)
    assert first != bootstrap_interval(ratio_statistic("keylag"), restarts, 2)


@pytest.mark.filterwarnings("error")
def test_share_of_overhead_is_infinite_without_overhead_of_the_other() -> None:
    seconds = {"bare": 1.0, "keylag": 1.1, "otel": 3.0, "other": 1.0, "less": 0.9}

    assert share_statistic("keylag", "otel")(seconds) == pytest.approx(0.05)
    assert share_statistic("keylag", "other")(seconds) == math.inf
    assert share_statistic("keylag", "less")(seconds) == math.inf
    assert share_statistic("bare", "other")(seconds) == math.inf


@pytest.mark.filterwarnings("error")
def test_share_has_no_interval_if_a_restart_has_no_overhead_of_the_other() -> None:
    restarts = [
        [{"bare": 1.0, "keylag": 1.01, "otel": 1.0 + added}]
        for added in (0.2, 0.2, 0.2, -0.1)
    ]

    found = bootstrap_interval(share_statistic("keylag", "otel"), restarts, 1)

    assert found.mid == pytest.approx(0.04 / 0.5)
    assert (found.low, found.high) == UNKNOWN
    nothing = bootstrap_interval(share_statistic("keylag", "otel"), restarts[3:], 1)
    assert nothing.as_list() == [None, None, None]


def test_interval_contains_its_ends() -> None:
    found = Interval(1.0, 1.5, 2.0)

    assert found.contains(1.0)
    assert found.contains(2.0)
    assert not found.contains(2.1)
    assert not found.contains(0.9)
    assert found.width == 1.0
    assert found.as_list() == [1.0, 1.5, 2.0]
    assert found.as_text() == "1.500 [1.000, 2.000]"


@pytest.mark.parametrize("between", [0.0, 0.01])
@pytest.mark.parametrize("restarts", [2, 3, 6, 12])
def test_interval_covers_the_true_ratio_in_95_percent(
    between: float, restarts: int
) -> None:
    """Higher coverage would mean that intervals are too wide."""
    choice = Random(11)
    held = 0
    for seed in range(500):
        rounds = noisy_rounds(choice, restarts, 4, between, 0.01)
        held += bootstrap_interval(
            ratio_statistic("keylag"), rounds, seed, 400
        ).contains(1.05)

    assert 0.92 <= held / 500 <= 0.98
