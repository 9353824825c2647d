"""The simulation of experiments, with few of them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from candidates import (
    CONTROLLED,
    HOLM,
    LEAVING,
    UNCONTROLLED,
    Candidate,
    Question,
    sequence_factor,
    uses_control,
)
from keylag.experiment.estimates import Estimate, estimate_mean
from keylag.experiment.planned_looks import PlannedLooks
from keylag.experiment.verdicts import CANNOT_TELL, FASTER, NO_DIFFERENCE, SLOWER
from simulate import Case, _look, judge_experiment, simulate_experiment
from simulated_noise import ISSUE, VALIDATE

FEW = 30
CANDIDATE = {one.name: one for one in (*UNCONTROLLED, *CONTROLLED)}
PRESENT = CANDIDATE["planned looks, control"]
ISSUED = Case(ISSUE, (0.05,), 0.03, "mean", 15)


def verdicts(case: Case, candidate: Candidate) -> list[str]:
    """Return the verdicts on the first arm of few experiments."""
    outcomes = [
        judge_experiment(simulate_experiment(seed, case), case, candidate)
        for seed in range(FEW)
    ]
    assert all(0 < one.minutes <= case.limit for one in outcomes)
    return [one.verdicts[0] for one in outcomes]


def test_a_a_check_rarely_claims_a_difference() -> None:
    """5 % are allowed; few experiments vary more."""
    found = verdicts(replace(ISSUED, effects=(0.0,)), PRESENT)

    assert found.count(NO_DIFFERENCE) >= 0.7 * FEW
    assert len(found) - found.count(NO_DIFFERENCE) - found.count(CANNOT_TELL) <= 4


def test_planted_effect_is_found_sooner_than_by_the_former_method() -> None:
    now, before = (
        verdicts(ISSUED, one) for one in (PRESENT, CANDIDATE["confidence sequence"])
    )

    assert now.count(SLOWER) >= 0.9 * FEW
    assert before.count(SLOWER) < now.count(SLOWER)


def test_noise_is_like_that_of_recorded_runs() -> None:
    """The spread of figures between rounds; see simulated_noise."""
    rng = np.random.default_rng(1)
    issue, validate = (
        [load.draw(rng, [0.0] * arms)[0] for _ in range(100)]
        for load, arms in ((ISSUE, 5), (VALIDATE, 2))
    )

    assert 0.02 < np.std([one.ratios["mean"] for one in issue]) < 0.074
    assert 0.008 < np.std([one.ratios["mean"] for one in validate]) < 0.032
    assert 0.005 < np.std([one.ratios["p50"] for one in validate]) < 0.023
    assert {len(one.seconds[0]) for one in issue} == {60}


def test_control_that_differs_between_the_arms_is_not_used() -> None:
    """As in experiments: a control that an arm changes would move its result."""
    (arm,) = simulate_experiment(1, replace(ISSUED, effects=(0.0,)))
    shifted = [replace(one, control=one.control + 0.5) for one in arm]
    question = Question("mean", PlannedLooks(len(arm), 0.05), control=True)

    assert uses_control(arm, question)
    assert not uses_control(shifted, question)
    assert not uses_control(arm, replace(question, control=False))


def test_arms_share_the_error_of_leaving_out_a_control() -> None:
    """A control just beyond its interval for one arm is within that for six."""
    (arm,) = simulate_experiment(1, replace(ISSUED, effects=(0.0,)))
    looks = PlannedLooks(len(arm), 0.05)
    found = estimate_mean([one.control for one in arm])
    shift = 1.01 * looks.half_width(found) - found.mean
    shifted = [replace(one, control=one.control + shift) for one in arm]
    question = Question("mean", PlannedLooks(len(arm), 0.05), control=True)

    assert not uses_control(shifted, question)
    assert uses_control(shifted, replace(question, arms=6))


def test_holm_decides_at_least_what_bonferroni_does() -> None:
    case = Case(ISSUE, (-0.05, -0.03, 0.0), 0.03, "mean", 15)
    claims = {"both": 0, "holm only": 0}
    for seed in range(FEW):
        arms = simulate_experiment(seed, case)
        bonferroni = CANDIDATE["planned looks"]
        shared = _look(arms, case, bonferroni, case.question(bonferroni))
        stepped = _look(arms, case, HOLM[0], case.question(HOLM[0]))
        for (one, _), (other, _) in zip(shared, stepped, strict=True):
            assert one in {other, CANNOT_TELL}
            claims["both"] += one == other == FASTER
            claims["holm only"] += one != other == FASTER

    assert claims["both"] > 0
    assert claims["holm only"] > 0


def test_arms_that_stay_get_the_time_of_those_that_leave() -> None:
    """Two arms are far from the base; the equal ones get more rounds, and verdicts."""
    case = Case(ISSUE, (-0.2, -0.2, 0.0, 0.0), 0.03, "mean", 15)
    equal = {"stay": 0, "leave": 0}
    for seed in range(10):
        arms = simulate_experiment(seed, case)
        staying, leaving = (
            judge_experiment(arms, case, one) for one in (PRESENT, LEAVING[-1])
        )
        equal["stay"] += staying.verdicts.count(NO_DIFFERENCE)
        equal["leave"] += leaving.verdicts.count(NO_DIFFERENCE)

        assert staying.verdicts[:2] == leaving.verdicts[:2] == (FASTER, FASTER)
        assert leaving.minutes <= case.limit

    assert equal["leave"] > equal["stay"]


@pytest.mark.parametrize(("rounds", "expected"), [(4, 10.09), (10, 3.882)])
def test_confidence_sequence_is_that_of_the_former_experiments(
    rounds: int, expected: float
) -> None:
    assert sequence_factor(rounds, 0.05) == pytest.approx(expected, rel=1e-3)


def test_confidence_sequence_is_half_again_as_wide_as_planned_looks() -> None:
    last = Estimate(0.0, 1.0, 19, 20)
    planned = PlannedLooks(20, 0.05).half_width(last)

    assert sequence_factor(20, 0.05) / planned == pytest.approx(1.5, abs=0.01)
    assert planned / stats.t.isf(0.025, 19) == pytest.approx(1.13, abs=0.01)
