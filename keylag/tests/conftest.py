"""Fixtures for tests of experiments."""

from pathlib import Path

import pytest
from fake_experiment import ENVIRONMENT, PLAN, FakeExecutor, MakeRun

from keylag.experiment.run import ExperimentRun
from keylag.experiment.run_folder import RunFolder, RunState


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Return a function that makes a run with seed 3, or resumes it by its name."""

    def make(name: str, fake: FakeExecutor, rounds: int = 6) -> ExperimentRun:
        folder = RunFolder(tmp_path / name)
        if not folder.path.exists():
            plan = tmp_path / "plan.toml"
            plan.write_text(PLAN.format(rounds=rounds))
            folder.create(plan, RunState(seed=3, environment=ENVIRONMENT))
        return ExperimentRun(folder.load_plan(), folder, fake, lambda _run: None)

    return make
