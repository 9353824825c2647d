"""Rounds drawn from those of recorded runs, without their effects.

    .venv/bin/python bench/recorded_noise.py bench/recordings/same out/repeated/same/*

keeps what a simulation needs of the runs of one plan: the plan, and the ratios of each
round.
"""

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click
import numpy as np

from keylag.experiment.analysis import figures_by_arm
from keylag.experiment.arm_pair import FiguresByRound
from keylag.experiment.measures import MEASURES
from keylag.experiment.plan import Plan
from keylag.experiment.plan_parser import read_plan
from keylag.experiment.ratios import contributions, log_ratios
from keylag.experiment.run_folder import RunFolder
from simulated_noise import SimulatedRound

PLAN: Final = "plan.toml"
ROUNDS: Final = "rounds.json"
DECIMALS: Final = 6
BLOCK_ROUNDS: Final = 5
"""Consecutive rounds that are drawn together."""


@dataclass(frozen=True)
class Recording:
    """The rounds of runs, to draw from with replacement."""

    name: str
    plan: Plan
    seconds: float
    """Of a round."""
    rounds: list[list[SimulatedRound]]
    """By round and arm, without the mean of the arm over all rounds."""

    def round_seconds(self, arms: int) -> float:
        """How long a round of so many of the arms took, with restarts and warm-up."""
        return self.seconds * arms / len(self.plan.arms)

    def draw_rounds(
        self, rng: np.random.Generator, slowdowns: list[float], number: int
    ) -> list[list[SimulatedRound]]:
        """Return the figures of all arms but the base, by round.

        Neighbours stay neighbours, so that what a machine does to several rounds in a
        row is in the draw (circular block bootstrap: D. N. Politis and J. P. Romano,
        1992).
        """
        blocks = math.ceil(number / BLOCK_ROUNDS)
        first = rng.integers(len(self.rounds), size=(blocks, 1))
        drawn = (first + np.arange(BLOCK_ROUNDS)).ravel()[:number] % len(self.rounds)
        return [self._with_effects(self.rounds[one], slowdowns) for one in drawn]

    @staticmethod
    def _with_effects(
        drawn: list[SimulatedRound], slowdowns: list[float]
    ) -> list[SimulatedRound]:
        return [
            one.with_effect(slowdown)
            for one, slowdown in zip(drawn, slowdowns[1:], strict=True)
        ]


def load_recording(folder: Path) -> Recording:
    """Return the noise of a kept recording, or of a run, which may still go on."""
    if (folder / ROUNDS).exists():
        plan, (seconds, rounds) = read_plan(folder / PLAN), _read_rounds(folder)
    else:
        plan, seconds, rounds = _rounds_of_run(folder)
    arms = [_centred(list(one)) for one in zip(*rounds, strict=True)]
    centred = [list(one) for one in zip(*arms, strict=True)]
    return Recording(folder.name, plan, seconds, centred)


def keep_recording(folder: Path, runs: Sequence[Path]) -> int:
    """Write the rounds of the runs of one plan to a folder; return their number."""
    found = [_rounds_of_run(run) for run in runs]
    kept = [
        [
            {
                "ratios": {n: round(v, DECIMALS) for n, v in arm.ratios.items()},
                "control": round(arm.control, DECIMALS),
            }
            for arm in one
        ]
        for _, _, rounds in found
        for one in rounds
    ]
    seconds = sum(one * len(rounds) for _, one, rounds in found) / len(kept)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(runs[0] / PLAN, folder / PLAN)
    lines = ",\n".join(json.dumps(one) for one in kept)
    text = f'{{"round_seconds": {seconds:.3f}, "rounds": [\n{lines}\n]}}\n'
    (folder / ROUNDS).write_text(text)
    return len(kept)


def _read_rounds(folder: Path) -> tuple[float, list[list[SimulatedRound]]]:
    kept = json.loads((folder / ROUNDS).read_text())
    rounds = [[SimulatedRound(**arm) for arm in one] for one in kept["rounds"]]
    return kept["round_seconds"], rounds


def _rounds_of_run(folder: Path) -> tuple[Plan, float, list[list[SimulatedRound]]]:
    # The seconds of a round, and its figures by arm.
    run = RunFolder(folder)
    plan, state = run.load_plan(), run.load_state()
    figures = figures_by_arm(run.load_rows(state), plan.decision.method)
    complete = sorted(set.intersection(*(set(figures[arm]) for arm in plan.arm_names)))
    arms = [
        _compare(figures[plan.base], figures[arm], complete, plan)
        for arm in plan.other_arms
    ]
    rounds = [list(one) for one in zip(*arms, strict=True)]
    return plan, state.seconds / state.rounds, rounds


def _compare(
    base: FiguresByRound, arm: FiguresByRound, rounds: list[int], plan: Plan
) -> list[SimulatedRound]:
    def pair(name: str) -> tuple[list[float], list[float]]:
        return [base[one][name] for one in rounds], [arm[one][name] for one in rounds]

    ratios = {name: log_ratios(*pair(name)) for name in MEASURES}
    if (measure := plan.decision.measure) not in ratios:  # a part of the mean
        ratios[measure] = contributions(pair(measure), pair("mean"))
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
        name: float(np.mean([one.ratios[name] for one in rounds]))
        for name in rounds[0].ratios
    }
    return [
        replace(
            one,
            ratios={name: value - means[name] for name, value in one.ratios.items()},
            control=one.control - control,
        )
        for one in rounds
    ]


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
def command(folder: Path, runs: tuple[Path, ...]) -> None:
    """Keep the rounds of RUNS, folders of one plan, in FOLDER."""
    click.echo(f"{keep_recording(folder, runs)} rounds in {folder}")


if __name__ == "__main__":
    command()
