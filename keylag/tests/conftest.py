"""Fixtures for tests of experiments and faults."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_experiment import ENVIRONMENT, PLAN, FakeExecutor, MakeRun
from rich.console import Console
from test_stack_lifecycle import TOOLS, service

from keylag import processes
from keylag.datadir_cache import DatadirCache
from keylag.experiment.run import ExperimentRun
from keylag.experiment.run_folder import RunFolder, RunState
from keylag.faults.site import Site
from keylag.services.base import StackOptions
from keylag.stack import Stack

SERVERS = (
    service("memcached"),
    service("keystone", restart_with=("memcached",)),
)


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


@pytest.fixture
def fake_stack(tmp_path: Path) -> Iterator[Stack]:
    """A stack with a fake Keystone and a fake memcached."""
    started = Stack(
        tmp_path / "stack",
        TOOLS,
        StackOptions(cache="memcache_pool"),
        services=SERVERS,
        datadir_cache=DatadirCache(tmp_path / "store"),
    )
    try:
        with started:
            yield started
    finally:
        processes.stop_processes(processes.find_processes(below=tmp_path))


@pytest.fixture
def fault_site(fake_stack: Stack) -> Site:
    """The site of faults in the stack."""
    return Site(fake_stack.folder, Console(quiet=True), fake_stack)
