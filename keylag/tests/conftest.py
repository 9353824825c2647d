"""What tests of experiments share."""

from pathlib import Path

import pytest
from fake_experiment import ENVIRONMENT, PLAN, Fake, MakeRun

from keylag.experiment.journal import Folder, Journal
from keylag.experiment.run import Run


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Make runs with seed 3; the same folder goes on."""

    def make(name: str, fake: Fake, blocks: int = 6) -> Run:
        folder = Folder(tmp_path / name)
        if not folder.path.exists():
            plan = tmp_path / "plan.toml"
            plan.write_text(PLAN.format(blocks=blocks))
            folder.create(plan, Journal(seed=3, environment=ENVIRONMENT))
        return Run(folder.plan(), folder, fake, lambda _run: None)

    return make
