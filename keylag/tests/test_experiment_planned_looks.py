"""The intervals of planned looks: known bounds, and their error rate."""

import math

import numpy as np
import pytest
from scipy import stats

from keylag.experiment import planned_looks
from keylag.experiment.estimates import estimate_mean
from keylag.experiment.plan import MIN_ROUNDS
from keylag.experiment.planned_looks import PlannedLooks, error_levels, spent_share


def test_one_look_is_a_usual_interval_but_for_what_is_kept() -> None:
    [level] = error_levels(MIN_ROUNDS, 0.05, MIN_ROUNDS)

    assert level == pytest.approx(0.05 * planned_looks.SPENT_BY_PLAN)


def test_two_looks_have_the_bounds_of_a_bivariate_normal_distribution() -> None:
    """The second bound solves the equation that defines it."""
    first, second = error_levels(6, 0.05, 6)
    bounds = [stats.norm.isf(level / 2) for level in (first, second)]
    walk = stats.multivariate_normal(cov=[[1, math.sqrt(5 / 6)], [math.sqrt(5 / 6), 1]])
    inside = walk.cdf(bounds, lower_limit=[-bound for bound in bounds])

    assert 1 - inside == pytest.approx(0.05 * planned_looks.SPENT_BY_PLAN, abs=1e-5)
    assert first == pytest.approx(0.05 * spent_share(5, 6))


def test_error_is_spent_up_to_alpha_but_never_beyond() -> None:
    shares = [spent_share(done, 10) for done in range(1, 1000)]

    assert shares == sorted(shares)
    assert spent_share(10, 10) == planned_looks.SPENT_BY_PLAN
    assert shares[-1] < 1


def test_changed_plan_spends_what_the_looks_before_have_left() -> None:
    """After 8 of 10 rounds there is time for 30, and after 12 for 40."""
    changes = ((8, 10), (12, 30))
    shares = [spent_share(done, 40, changes) for done in range(1, 100)]

    assert shares == sorted(shares)
    assert shares[:8] == [spent_share(done, 10) for done in range(1, 9)]
    assert shares[11] == spent_share(12, 30, changes[:1]) < spent_share(9, 10)
    assert shares[39] == pytest.approx(planned_looks.SPENT_BY_PLAN)
    assert shares[-1] < 1


def experiments(rounds: int, number: int) -> np.ndarray:
    """Return the rounds of experiments without a difference."""
    return np.random.default_rng(5).standard_normal((number, rounds))


@pytest.mark.parametrize(("planned", "done"), [(8, 8), (20, 20), (10, 30)])
def test_looks_after_every_round_keep_the_error_rate(planned: int, done: int) -> None:
    """Also of a run that goes on beyond its plan; usual t intervals do not."""
    looks = PlannedLooks(planned, 0.05)
    wrong = usual = 0
    for values in experiments(done, 400):
        found = [estimate_mean(values[:n]) for n in range(MIN_ROUNDS, done + 1)]
        wrong += any(not looks.interval(one).holds_zero for one in found)
        usual += any(
            abs(one.mean)
            > stats.t.isf(0.025, one.degrees_of_freedom) * one.standard_error
            for one in found
        )

    assert wrong <= 32
    assert usual > wrong


@pytest.mark.parametrize("change", [(5, 10), (9, 10)])
def test_looks_of_a_changed_plan_keep_the_error_rate(change: tuple[int, int]) -> None:
    """The last interval is hardly wider than that of a plan made at the beginning."""
    looks, from_the_start = PlannedLooks(30, 0.05, (change,)), PlannedLooks(30, 0.05)
    wrong = 0
    for values in experiments(30, 400):
        found = [estimate_mean(values[:n]) for n in range(MIN_ROUNDS, 31)]
        wrong += any(not looks.interval(one).holds_zero for one in found)

    assert wrong <= 32
    last = found[-1]
    assert looks.half_width(last) < 1.3 * from_the_start.half_width(last)


def test_last_planned_interval_is_hardly_wider_than_a_usual_one() -> None:
    found = estimate_mean(list(experiments(20, 1)[0]))
    usual = stats.t.isf(0.025, 19) * found.standard_error

    assert usual < PlannedLooks(20, 0.05).half_width(found) < 1.15 * usual
    assert PlannedLooks(40, 0.05).half_width(found) > 1.4 * usual


def test_more_nodes_change_no_level(monkeypatch: pytest.MonkeyPatch) -> None:
    before = error_levels(20, 0.05, 40)
    monkeypatch.setattr(planned_looks, "NODES", 300)
    error_levels.cache_clear()

    assert error_levels(20, 0.05, 40) == pytest.approx(before, rel=1e-6)


@pytest.mark.parametrize("done", [5, 9, 12])
def test_plan_that_ends_early_has_looked_with_wider_intervals(done: int) -> None:
    """So the levels of the shorter plan keep the error rate, too."""
    looked, shorter = error_levels(13, 0.05, done), error_levels(done, 0.05, done)

    assert all(here <= there for here, there in zip(looked, shorter, strict=True))


def test_interval_is_infinite_before_the_first_look() -> None:
    few = estimate_mean([1.0, 2.0, 4.0, 3.0])

    assert PlannedLooks(5, 0.05).interval(few).high == math.inf


def test_equal_values_have_zero_width_only_if_exact() -> None:
    equal = estimate_mean([6.0] * 5)
    looks = PlannedLooks(5, 0.05)

    assert looks.interval(equal).low == -math.inf
    assert looks.interval(equal, exact=True).low == 6 == equal.mean
    assert looks.interval(estimate_mean([6.0] * 4), exact=True).high == math.inf
