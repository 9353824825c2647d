"""What disturbs an experiment, before it starts and while it runs."""

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from fake_experiment import FakeExecutor, MakeRun, fake_rows

from keylag.cli import main
from keylag.commands import experiment
from keylag.experiment import obstacles, option_checks, run
from keylag.experiment.obstacles import find_obstacles, measure_disturbance
from keylag.experiment.result import analyse_run
from keylag.experiment.schedule import Round
from keylag.experiment.stack_setup import PLANS_FOLDER

QUIET = {"busy_before": 0.05, "waiting_before": 0.1, "swapped_mib_before": 0.0}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("busy_before", 0.5, "used 50% of the processors' time"),
        ("waiting_before", 0.7, "waited for a CPU 70% of the time"),
        ("swapped_mib_before", 30.0, "swapped 30 MiB in 5 s"),
    ],
)
def test_each_disturbance_is_an_obstacle(name: str, value: float, text: str) -> None:
    [found] = find_obstacles(QUIET | {name: value})

    assert text in found
    assert not list(find_obstacles(QUIET))


def test_environment_of_an_earlier_run_has_less() -> None:
    assert not list(find_obstacles({"busy_before": 0.1}))


def test_disturbance_is_that_of_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressure = tmp_path / "cpu"
    pressure.write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\nfull\n")

    def sample(_seconds: float, *, percpu: bool) -> list[float]:
        assert percpu
        pressure.write_text("some avg10=9.00 avg60=0.00 avg300=0.00 total=3500000\n")
        return [100.0, 20.0, 40.0]

    monkeypatch.setattr(obstacles, "PRESSURE", pressure)
    monkeypatch.setattr(obstacles.psutil, "cpu_percent", sample)
    found = measure_disturbance([1, 2])

    assert (found["busy_before"], found["waiting_before"]) == (0.3, 0.5)


def test_kernel_without_pressure_has_no_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(obstacles, "PRESSURE", Path("/nonexistent"))
    monkeypatch.setattr(obstacles, "SAMPLE_SECONDS", 0.1)

    assert measure_disturbance([0])["waiting_before"] == 0


@pytest.mark.parametrize("options", [[], ["--anyway"]])
def test_busy_machine_stops_a_run_unless_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    environment = {"busy_before": 0.9, "arms": {}}
    monkeypatch.setenv("KEYLAG_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(option_checks, "check_plan", lambda *_: None)
    monkeypatch.setattr(experiment, "collect", lambda _plan: environment)
    monkeypatch.setattr(experiment, "make_executor", lambda *_: FailingExecutor())
    out = tmp_path / "out"
    plan = str(PLANS_FOLDER / "same.toml")
    result = CliRunner().invoke(
        main, ["experiment", "run", plan, f"--out={out}", *options]
    )

    assert result.exit_code == 1
    assert ("start with --anyway" in result.output) == (not options)
    assert ("an error ended" in result.output or out.exists()) == bool(options)


class FailingExecutor(FakeExecutor):
    """An executor whose arms do not start."""

    def start(self) -> None:
        """Fail."""
        message = "no stack in this test"
        raise OSError(message)


def test_report_warns_of_requests_that_wait_for_a_worker(make_run: MakeRun) -> None:
    def saturated(this_round: Round, arm: str) -> run.ArmResult | None:
        rows = fake_rows(this_round, arm)
        slow = [replace(row, latency_seconds=3 * row.latency_seconds) for row in rows]
        return run.ArmResult(slow) if arm == "b" else None

    run_under_test = make_run("r", FakeExecutor(override=saturated))
    run_under_test.execute()
    warnings = analyse_run(run_under_test.folder).warnings

    [found] = [text for text in warnings if "wait" in text]
    assert "Requests of b wait 72% of their time outside Keystone" in found
