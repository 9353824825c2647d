"""Rounds drawn from those of a recorded run, without its effects."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from keylag.experiment.analysis import figures_by_arm
from keylag.experiment.arm_pair import FiguresByRound
from keylag.experiment.measures import MEASURES
from keylag.experiment.plan import Plan
from keylag.experiment.ratios import contributions, log_ratios
from keylag.experiment.run_folder import RunFolder
from simulated_noise import SimulatedRound


@dataclass(frozen=True)
class Recording:
    """The rounds of a run, to draw from with replacement."""

    name: str
    plan: Plan
    seconds: float
    """Of a round."""
    rounds: list[list[SimulatedRound]]
    """By round and arm, without the mean of the arm over all rounds."""

    def round_seconds(self, _arms: int) -> float:
        """How long a round took, with restarts and warm-up."""
        return self.seconds

    def draw(
        self, rng: np.random.Generator, slowdowns: list[float]
    ) -> list[SimulatedRound]:
        """Return the figures of all arms but the base in one round."""
        drawn = self.rounds[rng.integers(len(self.rounds))]
        return [
            one.with_effect(slowdown)
            for one, slowdown in zip(drawn, slowdowns[1:], strict=True)
        ]


def load_recording(folder: Path) -> Recording:
    """Return the noise of the run in a folder, which may still go on."""
    run = RunFolder(folder)
    plan, state = run.load_plan(), run.load_state()
    figures = figures_by_arm(run.load_rows(state), plan.decision.method)
    complete = set.intersection(*(set(figures[arm]) for arm in plan.arm_names))
    arms = [
        _centred(_compare(figures[plan.base], figures[arm], sorted(complete), plan))
        for arm in plan.other_arms
    ]
    rounds = [list(one) for one in zip(*arms, strict=True)]
    return Recording(folder.name, plan, state.seconds / state.rounds, rounds)


def _compare(
    base: FiguresByRound, arm: FiguresByRound, rounds: list[int], plan: Plan
) -> list[SimulatedRound]:
    def pair(name: str) -> tuple[list[float], list[float]]:
        return [base[one][name] for one in rounds], [arm[one][name] for one in rounds]

    ratios = {name: log_ratios(*pair(name)) for name in MEASURES}
    control = [0.0] * len(rounds)
    if plan.decision.control:
        control = contributions(pair(plan.decision.control), pair("mean"))
    return [
        SimulatedRound({name: values[n] for name, values in ratios.items()}, control[n])
        for n in range(len(rounds))
    ]


def _centred(rounds: list[SimulatedRound]) -> list[SimulatedRound]:
    control = float(np.mean([one.control for one in rounds]))
    means = {
        name: float(np.mean([one.ratios[name] for one in rounds])) for name in MEASURES
    }
    return [
        replace(
            one,
            ratios={name: value - means[name] for name, value in one.ratios.items()},
            control=one.control - control,
        )
        for one in rounds
    ]
