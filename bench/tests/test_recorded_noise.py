"""The noise of a recorded run."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from keylag.experiment.run_folder import RunFolder, RunState
from keylag.experiment.samples import Row
from recorded_noise import BLOCK_ROUNDS, keep_recording, load_recording
from simulate import command

PLAN = """\
question = "Which?"
base = "a"
[load]
plan = "token-issue"
[design]
rounds = 8
minutes = 10
[decision]
method = "POST"
measure = "mean"
smallest = 0.05
control = "password_hash"
[arms.a]
[arms.b]
[arms.c]
"""
ROUNDS = 8


def rows_of_round(number: int, rng: np.random.Generator) -> list[Row]:
    """Return the requests of all arms; b is 20 % slower."""
    return [
        Row(
            round=number,
            position=0,
            arm=arm,
            start_seconds=100.0 * number + request,
            method="POST",
            code="201",
            success=True,
            warm_up=False,
            latency_seconds=speed * (0.2 + rest),
            server_timing={"password_hash": speed * 0.2, "cache": speed * rest},
        )
        for arm, rest in (("a", 0.1), ("b", 0.16), ("c", 0.1))
        for speed in [math.exp(rng.normal(0, 0.05))]
        for request in range(10)
    ]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """The folder of a run."""
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    folder, state = RunFolder(tmp_path / "run"), RunState(seed=1)
    folder.create(plan, state)
    rng = np.random.default_rng(1)
    for number in range(ROUNDS):
        state.seconds += 30
        folder.add_round(state, rows_of_round(number, rng))
    return folder.path


def test_recording_has_the_noise_of_a_run_without_its_effects(recorded: Path) -> None:
    found = load_recording(recorded)
    slower = [arms[0] for arms in found.rounds]
    ratios = [one.ratios["mean"] for one in slower]
    control = [one.control for one in slower]

    assert (len(found.rounds), found.round_seconds(3)) == (ROUNDS, 30)
    assert np.mean(ratios) == pytest.approx(0)
    assert np.std(ratios) > 0.02
    assert np.corrcoef(ratios, control)[0, 1] > 0.95


def test_recording_has_the_part_that_its_plan_decides_by(recorded: Path) -> None:
    plan = recorded / "plan.toml"
    plan.write_text(PLAN.replace('measure = "mean"', 'measure = "cache"'))
    ratios = [arms[0].ratios for arms in load_recording(recorded).rounds]
    result = CliRunner().invoke(
        command, ["--recording", str(recorded), "--experiments=3"]
    )

    assert np.mean([one["cache"] for one in ratios]) == pytest.approx(0)
    assert np.std([one["cache"] for one in ratios]) < (
        np.std([one["mean"] for one in ratios])
    )
    assert result.exit_code == 0, result.output
    assert "run, cache: planted +5%" in result.output


def test_planted_effect_is_that_of_its_arm_only(recorded: Path) -> None:
    found = load_recording(recorded)
    rng = np.random.default_rng(2)
    drawn = found.draw_rounds(rng, [0.0, 0.5, 0.0], 400)
    means = np.mean([[one.ratios["mean"] for one in arms] for arms in drawn], axis=0)

    assert means[0] == pytest.approx(math.log(1.5), abs=0.02)
    assert means[1] == pytest.approx(0, abs=0.02)


def test_neighbouring_rounds_are_drawn_together(recorded: Path) -> None:
    found = load_recording(recorded)
    drawn = found.draw_rounds(np.random.default_rng(3), [0.0, 0.0, 0.0], 12)
    numbers = [found.rounds.index(one) for one in drawn]
    steps = [(after - before) % ROUNDS for before, after in pairwise(numbers)]

    assert len(drawn) == 12
    assert [step for n, step in enumerate(steps, 1) if n % BLOCK_ROUNDS] == [1] * 9


def test_kept_recording_has_the_rounds_of_all_runs(
    recorded: Path, tmp_path: Path
) -> None:
    once, twice = load_recording(recorded), tmp_path / "kept"

    assert keep_recording(twice, [recorded, recorded]) == 2 * ROUNDS
    found = load_recording(twice)
    assert (found.name, found.plan.base, found.seconds) == ("kept", "a", 30)
    for first, second in zip(once.rounds, found.rounds[ROUNDS:], strict=True):
        assert second[0].ratios == pytest.approx(first[0].ratios, abs=1e-5)
        assert second[0].control == pytest.approx(first[0].control, abs=1e-5)


def test_table_of_a_recording_has_the_methods_with_a_control(recorded: Path) -> None:
    result = CliRunner().invoke(
        command, ["--recording", str(recorded), "--experiments=3"]
    )

    assert result.exit_code == 0, result.output
    assert "run, mean: planted +5%, +0%, 5% matter, 8 rounds in 4 minutes" in (
        result.output
    )
    assert "| planned looks, control |" in result.output
    assert "slices" not in result.output
