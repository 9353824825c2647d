"""The reports that are run again and kept."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from keylag.experiment.run import ALL_VERDICTS_REACHED, OUT_OF_REACH
from keylag.experiment.run_folder import INTERRUPTED
from keylag_dev import experiment_reports
from keylag_dev.experiment_reports import keep, own_plans, reason_against
from keylag_dev.repeated_experiments import read_complete

PLAN = "[arms.a]\n[arms.b]\n"


def write_run(folder: Path, ended: str) -> None:
    """Write the files of a run."""
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps({"ended": ended}))
    (folder / "report.md").write_text("# Which?\n")


def test_plans_are_those_with_stacks_of_their_own() -> None:
    plans = own_plans()

    assert "cache-backends" in plans
    assert "two-keystones" not in plans
    assert "compose-cache" not in plans


def test_interrupted_run_is_not_complete(tmp_path: Path) -> None:
    write_run(tmp_path / "a", INTERRUPTED)
    write_run(tmp_path / "b", ALL_VERDICTS_REACHED)

    assert not read_complete(tmp_path / "a")
    assert read_complete(tmp_path / "b")
    assert not read_complete(tmp_path / "c")


def test_report_and_result_are_kept(tmp_path: Path) -> None:
    write_run(tmp_path / "run", ALL_VERDICTS_REACHED)
    (tmp_path / "run" / "samples.csv").touch()
    keep("plan", tmp_path / "run", tmp_path)

    kept = sorted(path.name for path in (tmp_path / "plan").iterdir())
    assert kept == ["report.md", "result.json"]


@pytest.mark.parametrize(
    ("ended", "plan", "arms", "reason"),
    [
        (ALL_VERDICTS_REACHED, PLAN, ["a", "b"], ""),
        (OUT_OF_REACH, PLAN, ["a", "b"], "noise has ended it"),
        (ALL_VERDICTS_REACHED, f"# former\n{PLAN}", ["a", "b"], "has changed since"),
        (ALL_VERDICTS_REACHED, PLAN, ["a"], "it lacks b"),
    ],
)
def test_run_that_does_not_speak_for_its_plan_is_not_kept(
    tmp_path: Path, ended: str, plan: str, arms: Sequence[str], reason: str
) -> None:
    (tmp_path / "caches.toml").write_text(PLAN)
    folder = tmp_path / "run"
    write_run(folder, ended)
    result = {"ended": ended, "plan": {"arms": dict.fromkeys(arms)}}
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "plan.toml").write_text(plan)
    found = reason_against("caches", folder, tmp_path)

    assert reason in found
    assert bool(found) == bool(reason)


def test_run_that_asked_for_another_interval_is_not_kept(tmp_path: Path) -> None:
    plan = f"[decision]\nsmallest = 0.1\n{PLAN}"
    (tmp_path / "caches.toml").write_text(plan)
    write_run(tmp_path / "run", ALL_VERDICTS_REACHED)
    result = {
        "ended": ALL_VERDICTS_REACHED,
        "noise_check": {"forecast": {"asked": 0.05}},
        "plan": {"arms": {"a": None, "b": None}},
    }
    (tmp_path / "run" / "result.json").write_text(json.dumps(result))
    (tmp_path / "run" / "plan.toml").write_text(plan)

    found = reason_against("caches", tmp_path / "run", tmp_path)

    assert "it asked for 5% while it ran, and its plan asks for 10%" in found


def test_complete_runs_are_left_alone_and_an_interruption_ends_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    kept: list[str] = []

    def run(words: Sequence[str]) -> int:
        started.append(words[1])
        ended = INTERRUPTED if words[1] == "c" else ALL_VERDICTS_REACHED
        write_run(tmp_path / words[1], ended)
        return 130 if words[1] == "c" else 0

    monkeypatch.setattr(experiment_reports, "run_experiment", run)
    monkeypatch.setattr(
        experiment_reports, "keep", lambda plan, _folder: kept.append(plan)
    )
    monkeypatch.setattr(experiment_reports, "reason_against", lambda *_: "")
    monkeypatch.setattr(experiment_reports, "update_page", lambda: None)
    write_run(tmp_path / "a", ALL_VERDICTS_REACHED)
    result = CliRunner().invoke(
        experiment_reports.main, ["a", "b", "c", "d", f"--out={tmp_path}"]
    )

    assert result.exit_code == 130
    assert started == ["b", "c"]
    assert kept == ["a", "b"]


def test_only_plans_of_other_keystones_are_run_on_a_busy_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: dict[str, bool] = {}

    def run(words: Sequence[str]) -> int:
        started[words[1]] = "--anyway" in words
        write_run(tmp_path / words[1], OUT_OF_REACH)
        return 1

    monkeypatch.setattr(experiment_reports, "run_experiment", run)
    plans = ["catalog", "neighbours-cpu"]
    CliRunner().invoke(experiment_reports.main, [*plans, f"--out={tmp_path}"])

    assert started == {"catalog": False, "neighbours-cpu": True}
