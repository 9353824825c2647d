"""The statistics, on blocks whose answers are known."""

import math
from random import Random

import pytest

from keylag_bench.intervals import (
    Interval,
    blocks_of,
    interval,
    ratio_of,
    resampled,
    share_of,
    total,
)
from keylag_bench.rows import Row

ARMS = ("bare", "keylag")


def a_row(restart: int, block: int, arm: str, seconds: float) -> Row:
    """Return a row; its wall time is twice its CPU time."""
    return Row("w", restart, block, arm, 10, seconds, 2 * seconds)


def noisy(
    choice: Random, restarts: int, blocks: int, between: float, within: float
) -> list[list[dict[str, float]]]:
    """Return blocks whose true ratio is 1.05, with noise at both levels."""
    return [
        [
            {"bare": 1.0, "keylag": 1.05 + shift + choice.gauss(0, within)}
            for _ in range(blocks)
        ]
        for shift in [choice.gauss(0, between) for _ in range(restarts)]
    ]


def test_blocks_that_lack_an_arm_are_left_out() -> None:
    """An interrupted block does not count, nor a restart that has no other."""
    rows = [
        a_row(0, 0, "bare", 1.0),
        a_row(0, 0, "keylag", 2.0),
        a_row(0, 1, "bare", 3.0),
        a_row(1, 0, "keylag", 4.0),
    ]

    assert blocks_of(rows, lambda row: row.cpu_seconds, ARMS) == [
        [{"bare": 1.0, "keylag": 2.0}]
    ]
    assert blocks_of(rows[:2], lambda row: row.wall_seconds, ARMS) == [
        [{"bare": 2.0, "keylag": 4.0}]
    ]


def test_a_ratio_is_one_of_sums() -> None:
    """A long block weighs more than a short one: 5 / 4, not the mean of ratios."""
    restarts = [[{"bare": 1.0, "keylag": 2.0}], [{"bare": 3.0, "keylag": 3.0}]]

    assert ratio_of("keylag")(total(restarts)) == 5 / 4


def test_bare_keystone_is_all_of_it() -> None:
    """Where it ran twice an arm is compared with both, the control with the other."""
    seconds = {"bare": 1.0, "bare_again": 3.0, "keylag": 3.0, "otel": 6.0}

    assert ratio_of("keylag")(seconds) == 1.5
    assert ratio_of("bare_again")(seconds) == 3.0
    assert ratio_of("bare")(seconds) == 1.0
    assert share_of("keylag", "otel")(seconds) == 0.25


def test_equal_blocks_leave_no_doubt() -> None:
    """Without any variation the interval is the estimate."""
    restarts = [[{"bare": 2.0, "keylag": 3.0}] * 4] * 3

    found = interval(ratio_of("keylag"), restarts, resampled(restarts, 1))

    assert found == Interval(1.5, 1.5, 1.5)


def test_two_restarts_have_a_known_distribution() -> None:
    """A quarter of the resamples has only the one, a quarter only the other."""
    restarts = [[{"bare": 1.0, "keylag": 1.0}], [{"bare": 1.0, "keylag": 3.0}]]

    drawn = [seconds["keylag"] for seconds in resampled(restarts, 1)]

    assert {2.0, 4.0, 6.0} == set(drawn)
    assert drawn.count(2.0) / len(drawn) == pytest.approx(0.25, abs=0.04)
    assert drawn.count(6.0) / len(drawn) == pytest.approx(0.25, abs=0.04)


def test_the_same_seed_draws_the_same_blocks() -> None:
    """An analysis can be repeated."""
    restarts = noisy(Random(3), 4, 5, 0.01, 0.01)

    first = resampled(restarts, 1, 9)

    assert first == resampled(restarts, 1, 9)
    assert first != resampled(restarts, 2, 9)


@pytest.mark.parametrize("between", [0.0, 0.01])
@pytest.mark.parametrize("restarts", [6, 12])
def test_the_interval_holds_the_truth_and_little_else(
    between: float, restarts: int
) -> None:
    """Nineteen in twenty experiments have the true ratio inside, give or take.

    What differs between blocks must not count twice: intervals that always hold the
    truth are wider than they say.
    """
    choice = Random(11)
    held = 0
    for _ in range(500):
        blocks = noisy(choice, restarts, 4, between, 0.01)
        draws = resampled(blocks, 1, 400)
        held += interval(ratio_of("keylag"), blocks, draws).holds(1.05)

    assert 0.9 <= held / 500 <= 0.975


def test_share_of_what_another_adds() -> None:
    """0.1 of 2.0 is a twentieth; of nothing it is infinite."""
    seconds = {"bare": 1.0, "keylag": 1.1, "otel": 3.0, "other": 1.0}

    assert share_of("keylag", "otel")(seconds) == pytest.approx(0.05)
    assert math.isinf(share_of("keylag", "other")(seconds))


def test_interval_knows_what_it_holds() -> None:
    """Its ends belong to it."""
    found = Interval(1.0, 1.5, 2.0)

    assert found.holds(1.0)
    assert not found.holds(2.1)
    assert found.width == 1.0
    assert found.as_list() == [1.0, 1.5, 2.0]
