"""The statistics, on rounds whose answers are known."""

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
    """Return a row; its wall time is twice its CPU time."""
    return Row("w", restart, round_number, arm, 10, seconds, 2 * seconds)


def noisy_rounds(
    choice: Random, restarts: int, rounds: int, between: float, within: float
) -> list[list[dict[str, float]]]:
    """Return rounds whose true ratio is 1.05, with noise at both levels.

    The machine's speed, which both arms share, differs by a tenth between restarts.
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


def test_blocks_that_lack_an_arm_are_left_out() -> None:
    """An interrupted round does not count, nor a restart that has no other."""
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


def test_a_ratio_is_one_of_sums() -> None:
    """A long round weighs more than a short one: 5 / 4, not the mean of ratios."""
    restarts = [[{"bare": 1.0, "keylag": 2.0}], [{"bare": 3.0, "keylag": 3.0}]]

    assert total_seconds(restarts) == {"bare": 4.0, "keylag": 5.0}
    assert bootstrap_interval(ratio_statistic("keylag"), restarts, 1).mid == 5 / 4


def test_bare_keystone_is_all_of_it() -> None:
    """Where it ran twice an arm is compared with both, the control with the other."""
    seconds = {"bare": 1.0, "bare_again": 3.0, "keylag": 3.0, "otel": 6.0}

    assert ratio_statistic("keylag")(seconds) == 1.5
    assert ratio_statistic("bare_again")(seconds) == 3.0
    assert ratio_statistic("bare")(seconds) == 1.0
    assert share_statistic("keylag", "otel")(seconds) == 0.25


def test_arms_are_compared_with_each_other() -> None:
    """With the arm that is named, and no other."""
    seconds = {"bare": 1.0, "bare_again": 3.0, "keylag": 4.0, "keylag_python": 5.0}

    assert ratio_statistic("keylag_python", "keylag")(seconds) == 1.25
    assert ratio_statistic("bare_again", "keylag")(seconds) == 0.75


def test_equal_restarts_have_an_interval_without_width() -> None:
    """It is for the verdicts to doubt them."""
    restarts = [[{"bare": 2.0, "keylag": 3.0}] * 4] * 3

    assert bootstrap_interval(ratio_statistic("keylag"), restarts, 1) == Interval(
        1.5, 1.5, 1.5
    )


@pytest.mark.parametrize("rounds", [1, 4, 100])
def test_one_restart_has_no_interval(rounds: int) -> None:
    """However many rounds it has: they say nothing of the next restart."""
    restarts = noisy_rounds(Random(3), 1, rounds, 0.01, 0.01)

    found = bootstrap_interval(ratio_statistic("keylag"), restarts, 1)

    assert (found.low, found.high) == UNKNOWN
    assert found.mid == pytest.approx(1.05, abs=0.05)
    assert found.as_text() == f"{found.mid:.3f} (no interval)"
    assert found.as_list() == [None, found.mid, None]


@pytest.mark.parametrize("restarts", [2, 3, 6, 12])
def test_an_interval_of_a_mean_is_students(restarts: int) -> None:
    """Where the base is always alike the ratio is a mean, whose interval is known."""
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


def test_whole_restarts_are_drawn() -> None:
    """What differs between the rounds of a restart alone is no uncertainty of its sum.

    With each round drawn by itself the two would differ.
    """
    apart = [[{"bare": 1.0, "keylag": 1.0}, {"bare": 1.0, "keylag": 3.0}]] * 5
    alike = [[{"bare": 2.0, "keylag": 4.0}]] * 5

    for restarts in (apart, alike):
        assert bootstrap_standard_error(ratio_statistic("keylag"), restarts, 1) == 0.0


def test_arms_of_a_restart_are_drawn_together() -> None:
    """A restart that is slow for all arms is no difference between them."""
    restarts = [[{"bare": speed, "keylag": 1.05 * speed}] for speed in (1.0, 2.0, 7.0)]

    found = bootstrap_interval(ratio_statistic("keylag"), restarts, 1)

    assert found.as_list() == pytest.approx([1.05] * 3)


def test_the_same_seed_is_the_same_interval() -> None:
    """An analysis can be repeated."""
    restarts = noisy_rounds(Random(3), 4, 5, 0.01, 0.01)

    first = bootstrap_interval(ratio_statistic("keylag"), restarts, 1)

    assert first == bootstrap_interval(ratio_statistic("keylag"), restarts, 1)
    assert first != bootstrap_interval(ratio_statistic("keylag"), restarts, 2)


@pytest.mark.filterwarnings("error")
def test_share_of_what_another_adds() -> None:
    """0.1 of 2.0 is a twentieth; of nothing, or of less, it is infinite."""
    seconds = {"bare": 1.0, "keylag": 1.1, "otel": 3.0, "other": 1.0, "less": 0.9}

    assert share_statistic("keylag", "otel")(seconds) == pytest.approx(0.05)
    assert share_statistic("keylag", "other")(seconds) == math.inf
    assert share_statistic("keylag", "less")(seconds) == math.inf
    assert share_statistic("bare", "other")(seconds) == math.inf


@pytest.mark.filterwarnings("error")
def test_a_share_of_what_may_be_nothing_has_no_interval() -> None:
    """One restart in which the other adds nothing could have been all of them."""
    restarts = [
        [{"bare": 1.0, "keylag": 1.01, "otel": 1.0 + added}]
        for added in (0.2, 0.2, 0.2, -0.1)
    ]

    found = bootstrap_interval(share_statistic("keylag", "otel"), restarts, 1)

    assert found.mid == pytest.approx(0.04 / 0.5)
    assert (found.low, found.high) == UNKNOWN
    nothing = bootstrap_interval(share_statistic("keylag", "otel"), restarts[3:], 1)
    assert nothing.as_list() == [None, None, None]


def test_interval_knows_what_it_holds() -> None:
    """Its ends belong to it."""
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
def test_the_interval_holds_the_truth_and_little_else(
    between: float, restarts: int
) -> None:
    """Nineteen in twenty experiments have the true ratio inside, give or take.

    What differs between rounds must not count twice: intervals that always hold the
    truth are wider than they say.
    """
    choice = Random(11)
    held = 0
    for seed in range(500):
        rounds = noisy_rounds(choice, restarts, 4, between, 0.01)
        held += bootstrap_interval(
            ratio_statistic("keylag"), rounds, seed, 400
        ).contains(1.05)

    assert 0.92 <= held / 500 <= 0.98
