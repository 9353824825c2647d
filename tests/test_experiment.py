"""An experiment on real stacks: two arms, ended by Ctrl-C after the first round."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pymysql
import pytest
from rich.console import Console

from keylag import processes
from keylag.experiment import option_checks, report
from keylag.experiment.plan_parser import PlanError, read_plan
from keylag.experiment.run import ArmResult, ExperimentRun
from keylag.experiment.run_folder import INTERRUPTED, RunFolder, RunState
from keylag.experiment.schedule import Round
from keylag.experiment.stack_executor import StackExecutor
from keylag.experiment.stack_setup import PLANS_FOLDER
from keylag.record import load_secrets
from keylag.stack import Stack
from keylag.tools import ToolError

pytestmark = pytest.mark.stack

PLAN = """\
question = "Does a cache help?"
base = "pool"
[load]
plan = "token-validate"
properties = { threads = 2, subjects = 1 }
[design]
warm_up_seconds = 0
turn_seconds = 2
minutes = 60
[decision]
method = "GET"
[arms.pool]
processes = 1
[arms.none]
cache = "null"
mariadb.max_connections = 77
revocation_events = 40
"""
ENVIRONMENT = {"busy_before": 0.1, "arms": {}}
STACK_PLANS = [
    path.stem
    for path in sorted(PLANS_FOLDER.glob("*.toml"))
    if not read_plan(path).elsewhere
]
QUERY = "SELECT @@max_connections, (SELECT COUNT(*) FROM revocation_event)"


class RecordingExecutor(StackExecutor):
    """Asks each arm's database what it is, and is interrupted in the second round."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.found: dict[str, tuple[int, int]] = {}

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """Load as ever, in the first round."""
        if this_round.number:
            raise KeyboardInterrupt
        self.found = {arm: query_database(self._stacks[arm]) for arm in this_round.arms}
        return super().run_round(this_round, out)


def query_database(stack: Stack) -> tuple[int, int]:
    """Return how many connections a database allows, and its revocation events."""
    password = load_secrets(stack.data).database
    place = {"host": "127.0.0.1", "port": stack.port("mariadb"), "database": "keystone"}
    connection = pymysql.connect(user="keystone", password=password, **place)
    with connection, connection.cursor() as cursor:
        cursor.execute(QUERY)
        return cursor.fetchone()


def test_an_option_that_keystone_lacks_is_refused(tmp_path: Path) -> None:
    """Keystone itself is asked; it would pass over the option without a word."""
    path = tmp_path / "plan.toml"
    path.write_text(PLAN + "keystone.identity.password_hash_round = 10\n")

    with pytest.raises(PlanError, match=r":18: .*no such option in \[identity\]"):
        option_checks.check_plan(read_plan(path), path)
    path.write_text(PLAN + "keystone.identity.password_hash_rounds = 10\n")
    option_checks.check_plan(read_plan(path), path)


class InterruptedExecutor(StackExecutor):
    """Is interrupted in the round `at`."""

    at = 1

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """Load as ever, up to there."""
        if this_round.number >= self.at:
            raise KeyboardInterrupt
        return super().run_round(this_round, out)


@pytest.mark.matrix
@pytest.mark.parametrize("name", STACK_PLANS)
def test_a_block_of_every_plan_that_ships(name: str, tmp_path: Path) -> None:
    """Each arm starts and is loaded; only one with a hung cache may fail."""
    path = PLANS_FOLDER / f"{name}.toml"
    plan = read_plan(path)
    short = plan.design.model_copy(update={"warm_up_seconds": 0, "turn_seconds": 8})
    plan = plan.model_copy(update={"design": short})
    try:
        option_checks.check_plan(plan, path)
    except ToolError as missing:
        pytest.skip(str(missing))
    folder = RunFolder(tmp_path / "out")
    folder.create(path, RunState(seed=1, environment=ENVIRONMENT))
    stacks = InterruptedExecutor(plan, tmp_path / "arms", Console(quiet=True))

    experiment_run = ExperimentRun(plan, folder, stacks, lambda _run: None)
    experiment_run.execute()

    answered = {row.arm for row in folder.load_rows() if row.success}
    may_fail = {arm for arm in plan.arm_names if plan.resolved_arm(arm).hung_cache}
    assert experiment_run.state.ended == INTERRUPTED, experiment_run.state.events
    assert answered | may_fail == set(plan.arm_names), experiment_run.state.events


@pytest.mark.matrix
def test_two_arms_of_one_plan(tmp_path: Path) -> None:
    """Each arm is what the plan says, and its samples tell what Keystone did."""
    experiment_run = run_of(tmp_path, "out", RecordingExecutor)
    experiment_run.execute()
    folder, stacks = experiment_run.folder, experiment_run.executor
    report.write_reports(folder)

    rows = {
        arm: [row for row in folder.load_rows() if row.arm == arm]
        for arm in stacks.found
    }
    assert experiment_run.state.ended == INTERRUPTED, experiment_run.state.events
    assert experiment_run.state.rounds == 1
    assert stacks.found == {"pool": (300, 0), "none": (77, 40)}
    assert all(len(found) > 2 for found in rows.values())
    assert all(row.success and row.method == "GET" for row in folder.load_rows())
    assert rows["none"][-1].server_timing["sql_statements"] > 20
    assert rows["pool"][-1].server_timing["sql_statements"] < 20
    assert "cannot tell yet" in (folder.path / "report.html").read_text()


class KillingExecutor(InterruptedExecutor):
    """One arm loses Keystone in the first round, the other JMeter in the second."""

    at = 2

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """Load as ever, while somebody may kill a program."""
        if this_round.number >= self.at:
            raise KeyboardInterrupt
        arm = ("none", "pool")[this_round.number]
        samples = out / arm / "samples.jtl"
        samples.unlink(missing_ok=True)
        find = (self._keystone, jmeter)[this_round.number]
        with ThreadPoolExecutor() as pool:
            killed = pool.submit(kill_when_loaded, find, arm, samples)
            results = super().run_round(this_round, out)
            killed.result()
        return results

    def _keystone(self, arm: str) -> list[psutil.Process]:
        found = processes.find(stack=self._stacks[arm].folder)
        return [mark.process for mark in found if mark.service == "keystone"]


def kill_when_loaded(
    find: Callable[[str], list[psutil.Process]], arm: str, samples: Path
) -> None:
    """Kill what is found, once the load has begun."""
    until = time.monotonic() + 60
    while time.monotonic() < until and not has_begun(samples):
        time.sleep(0.1)
    for process in find(arm):
        with suppress(psutil.Error):
            process.kill()


def has_begun(samples: Path) -> bool:
    """Tell whether a load is past what JMeter sends to prepare it."""
    return samples.exists() and ",GET " in samples.read_text()


def jmeter(arm: str) -> list[psutil.Process]:
    """Return the JMeter of an arm, which this process runs."""
    children = [one for one in psutil.Process().children() if one.name() == "java"]
    return [one for one in children if any(f"/{arm}/" in w for w in one.cmdline())]


@pytest.mark.matrix
def test_programs_that_die_in_a_turn(tmp_path: Path) -> None:
    """What was measured stays, what went wrong is told, the next round is whole."""
    experiment_run = run_of(tmp_path, "unlucky", KillingExecutor)
    experiment_run.execute()
    rows = experiment_run.folder.load_rows()
    events = "\n".join(experiment_run.state.events)

    assert experiment_run.state.ended == INTERRUPTED, events
    assert any(not row.success for row in rows if (row.round, row.arm) == (0, "none"))
    assert "round 1, arm pool: JMeter ended with code" in events
    whole = [row.success for row in rows if (row.round, row.arm) == (1, "none")]
    assert whole
    assert all(whole)
    report.write_reports(experiment_run.folder)
    said = (experiment_run.folder.path / "report.md").read_text()
    assert "cannot tell yet" in said
    assert "JMeter ended" in said


@pytest.mark.matrix
def test_an_interrupted_run_goes_on_in_the_same_order(tmp_path: Path) -> None:
    """Three rounds, with and without Ctrl-C in the second."""
    whole = run_of(tmp_path, "whole", type("Third", (InterruptedExecutor,), {"at": 3}))
    whole.execute()
    for at in (1, 3):
        broken = run_of(
            tmp_path, "broken", type("Part", (InterruptedExecutor,), {"at": at})
        )
        broken.execute()

    orders = [
        list(
            dict.fromkeys((r.round, r.position, r.arm) for r in run.folder.load_rows())
        )
        for run in (whole, broken)
    ]
    assert orders[0] == orders[1]
    assert len(orders[0]) == 6


def run_of(tmp_path: Path, name: str, kind: type[StackExecutor]) -> ExperimentRun:
    """Return a run of the plan above; with the same name it goes on."""
    folder = RunFolder(tmp_path / name)
    if not folder.path.exists():
        (tmp_path / "plan.toml").write_text(PLAN)
        begun = RunState(seed=1, environment=ENVIRONMENT)
        folder.create(tmp_path / "plan.toml", begun)
    stacks = kind(folder.load_plan(), tmp_path / "arms", Console(quiet=True))
    return ExperimentRun(folder.load_plan(), folder, stacks, lambda _run: None)
