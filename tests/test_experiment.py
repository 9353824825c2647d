"""Experiments on real stacks, with interruptions and killed programs."""

import math
import time
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pymysql
import pytest
from rich.console import Console

from keylag import processes
from keylag.experiment import noise, noise_check, option_checks, report
from keylag.experiment.capacity.open_load import OpenLoad
from keylag.experiment.capacity.run import (
    DONE,
    TIME_LIMIT_REACHED,
    CapacityRun,
    Settings,
)
from keylag.experiment.environment import usable_processors
from keylag.experiment.load_monitor import LoadMonitor
from keylag.experiment.plan_parser import PlanError, read_plan
from keylag.experiment.run import OUT_OF_REACH, ArmResult, ExperimentRun
from keylag.experiment.run_folder import INTERRUPTED, RunFolder, RunState
from keylag.experiment.schedule import Round, schedule_rounds
from keylag.experiment.stack_executor import StackExecutor
from keylag.experiment.stack_setup import PLANS_FOLDER
from keylag.services.base import first_bytes
from keylag.stack import Stack
from keylag.stack_info import StackInfo
from keylag.stack_record import load_secrets
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
TWO_CACHES = PLAN.replace('"null"', '"redis"')
CACHES = {
    "pool": ("memcached", b"set k 0 0 1\r\nv\r\n", b"get k\r\n", b"END\r\n"),
    "none": ("redis", b"SET k v\r\n", b"EXISTS k\r\n", b":0\r\n"),
}
"""The service of each arm of TWO_CACHES, how to fill it, and how it is empty."""
ENVIRONMENT = {"busy_before": 0.1, "arms": {}}
STACK_PLANS = [
    path.stem
    for path in sorted(PLANS_FOLDER.glob("*.toml"))
    if "remote" not in tomllib.loads(path.read_text(encoding="utf-8"))
]
QUERY = "SELECT @@max_connections, (SELECT COUNT(*) FROM revocation_event)"


class RecordingExecutor(StackExecutor):
    """Queries the database of each arm, and is interrupted in the second round."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.found: dict[str, tuple[int, int]] = {}

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """Run the round, or raise KeyboardInterrupt."""
        if this_round.number:
            raise KeyboardInterrupt
        self.found = {arm: query_database(self._stacks[arm]) for arm in this_round.arms}
        return super().run_round(this_round, out)


def query_database(stack: Stack) -> tuple[int, int]:
    """Return the connection limit of a database and the number of revocation events."""
    password = load_secrets(stack.data).database
    place = {"host": "127.0.0.1", "port": stack.port("mariadb"), "database": "keystone"}
    connection = pymysql.connect(user="keystone", password=password, **place)
    with connection, connection.cursor() as cursor:
        cursor.execute(QUERY)
        return cursor.fetchone()


def test_unknown_option_of_keystone_is_refused_with_its_line(tmp_path: Path) -> None:
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
        """Run the round, or raise KeyboardInterrupt."""
        if this_round.number >= self.at:
            raise KeyboardInterrupt
        return super().run_round(this_round, out)


class ServicesExecutor(InterruptedExecutor):
    """Records the processes of the arms under load, by service."""

    at = 2

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """Run the round and look for processes at its end."""
        results = super().run_round(this_round, out)
        found = processes.find_processes(below=self._folder)
        self.running = {one.service: one.process.environ() for one in found}
        return results


@pytest.mark.matrix
def test_noise_check_measures_real_arms_which_run_no_exporter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight clients of one process, and an interval that no run reaches."""
    plan = PLAN.replace("threads = 2", "threads = 8").replace(
        "turn_seconds = 2", "turn_seconds = 8"
    )
    plan = plan.replace('"GET"\n', '"GET"\nsmallest = 0.00001\n')
    found = make_run(tmp_path, "noise", ServicesExecutor, plan)
    monitor = LoadMonitor(tmp_path / "arms", usable_processors())
    monkeypatch.setattr(noise_check, "CHECK_SECONDS", 0)
    # A cache and none are so far apart that the run would go on.
    monkeypatch.setattr(noise, "SURE", math.inf)
    found.noise_checker = noise_check.NoiseChecker(found.plan, monitor, may_stop=True)
    found.execute()
    measured = noise_check.load_noise_check(found.folder.load_state())
    keystone = found.executor.running["keystone"]

    assert found.state.ended == OUT_OF_REACH, found.state.events
    assert measured.rounds == found.state.rounds == 2
    assert measured.disturbance.seconds > 4
    assert 0 <= measured.disturbance.other_programs < 1
    assert any("Requests of pool wait" in text for text in measured.obstacles)
    assert found.executor.running.keys() == {"mariadb", "memcached", "keystone"}
    assert keystone["OTEL_METRICS_EXPORTER"] == "none"
    assert keystone["OTEL_TRACES_EXPORTER"] == "none"


@pytest.mark.matrix
@pytest.mark.parametrize("name", STACK_PLANS)
def test_every_arm_of_every_plan_answers_in_one_round(
    name: str, tmp_path: Path
) -> None:
    """Arms with a hung cache may fail."""
    path = PLANS_FOLDER / f"{name}.toml"
    plan = read_plan(path)
    short = plan.design.model_copy(update={"warm_up_seconds": 0, "turn_seconds": 8})
    plan = plan.model_copy(update={"design": short})
    plan = plan.with_arms(plan.arms.keys() - option_checks.missing_arms(plan).keys())
    try:
        option_checks.check_plan(plan, path)
    except ToolError as missing:
        pytest.skip(str(missing))
    folder = RunFolder(tmp_path / "out")
    folder.create(path, RunState(seed=1, environment=ENVIRONMENT))
    stacks = InterruptedExecutor(plan, tmp_path / "arms", Console(quiet=True))

    run_under_test = ExperimentRun(plan, folder, stacks, lambda _run: None)
    run_under_test.execute()

    answered = {row.arm for row in folder.load_rows() if row.success}
    may_fail = {arm for arm in plan.arm_names if plan.resolved_arm(arm).hung_cache}
    assert run_under_test.state.ended == INTERRUPTED, run_under_test.state.events
    assert answered | may_fail == set(plan.arm_names), run_under_test.state.events


@pytest.mark.matrix
def test_arms_have_the_settings_of_the_plan_and_server_timing(tmp_path: Path) -> None:
    run_under_test = make_run(tmp_path, "out", RecordingExecutor)
    run_under_test.execute()
    folder, stacks = run_under_test.folder, run_under_test.executor
    report.write_reports(folder)

    rows = {
        arm: [row for row in folder.load_rows() if row.arm == arm]
        for arm in stacks.found
    }
    assert run_under_test.state.ended == INTERRUPTED, run_under_test.state.events
    assert run_under_test.state.rounds == 1
    assert stacks.found == {"pool": (300, 0), "none": (77, 40)}
    assert all(len(found) > 2 for found in rows.values())
    assert all(row.success and row.method == "GET" for row in folder.load_rows())
    assert rows["none"][-1].server_timing["sql_statements"] > 20
    assert rows["pool"][-1].server_timing["sql_statements"] < 20
    assert "cannot tell yet" in (folder.path / "report.html").read_text()


class KillingExecutor(InterruptedExecutor):
    """Kills Keystone of one arm in round 0, and JMeter of the other in round 1."""

    at = 2

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """Run the round, or raise KeyboardInterrupt."""
        if this_round.number >= self.at:
            raise KeyboardInterrupt
        arm = ("none", "pool")[this_round.number]
        samples = out / arm / "samples.jtl"
        samples.unlink(missing_ok=True)
        find = (self._find_keystone, find_jmeter)[this_round.number]
        with ThreadPoolExecutor() as pool:
            killed = pool.submit(kill_when_loaded, find, arm, samples)
            results = super().run_round(this_round, out)
            killed.result()
        return results

    def _find_keystone(self, arm: str) -> list[psutil.Process]:
        found = processes.find_processes(stack=self._stacks[arm].folder)
        return [mark.process for mark in found if mark.service == "keystone"]


def kill_when_loaded(
    find: Callable[[str], list[psutil.Process]], arm: str, samples: Path
) -> None:
    """Kill the processes that `find` returns once the load has started."""
    until = time.monotonic() + 60
    while time.monotonic() < until and not has_started(samples):
        time.sleep(0.1)
    for process in find(arm):
        with suppress(psutil.Error):
            process.kill()


def has_started(samples: Path) -> bool:
    """Return whether a load has sent requests beyond its set-up."""
    return samples.exists() and ",GET " in samples.read_text()


def find_jmeter(arm: str) -> list[psutil.Process]:
    """Return the JMeter of an arm, a child of this process."""
    children = [one for one in psutil.Process().children() if one.name() == "java"]
    return [one for one in children if any(f"/{arm}/" in w for w in one.cmdline())]


@pytest.mark.matrix
def test_killed_programs_are_reported_and_the_next_round_is_complete(
    tmp_path: Path,
) -> None:
    run_under_test = make_run(tmp_path, "unlucky", KillingExecutor)
    run_under_test.execute()
    rows = run_under_test.folder.load_rows()
    events = "\n".join(run_under_test.state.events)

    assert run_under_test.state.ended == INTERRUPTED, events
    assert any(not row.success for row in rows if (row.round, row.arm) == (0, "none"))
    assert "round 1, arm pool: JMeter failed with exit code" in events
    second_round = [row.success for row in rows if (row.round, row.arm) == (1, "none")]
    assert second_round
    assert all(second_round)
    report.write_reports(run_under_test.folder)
    report_text = (run_under_test.folder.path / "report.md").read_text()
    assert "cannot tell yet" in report_text
    assert "JMeter ended" in report_text


@pytest.mark.matrix
def test_resumed_run_keeps_the_order_of_the_seed(tmp_path: Path) -> None:
    """Three rounds, with and without Ctrl-C in the second."""
    whole = make_run(
        tmp_path, "whole", type("Third", (InterruptedExecutor,), {"at": 3})
    )
    whole.execute()
    for at in (1, 3):
        broken = make_run(
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


def test_every_arm_begins_a_round_with_an_empty_cache(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(TWO_CACHES)
    plan = read_plan(path)
    executor = StackExecutor(plan, tmp_path / "arms", Console(quiet=True))
    try:
        executor.start()
        ports = {
            arm: StackInfo(tmp_path / "arms" / arm).port(service)
            for arm, (service, *_) in CACHES.items()
        }
        for arm, (_, fill, _, _) in CACHES.items():
            assert first_bytes(ports[arm], fill)
        executor.begin_round(next(schedule_rounds(plan.arm_names, 1)))
        found = {
            arm: first_bytes(ports[arm], ask) for arm, (_, _, ask, _) in CACHES.items()
        }
    finally:
        executor.stop()

    assert found == {arm: empty for arm, (*_, empty) in CACHES.items()}


@pytest.mark.matrix
def test_capacity_of_an_arm_is_measured_by_trials_of_its_stack(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    plan = read_plan(path)
    executor = StackExecutor(plan, tmp_path / "arms", Console(quiet=True))
    settings = Settings(trial_seconds=2, repeats=1, minutes=2)
    load = OpenLoad(plan, settings.trial_seconds, settings.limit_seconds)
    measured = CapacityRun(
        plan, settings, 1, executor, load, tmp_path / "out", lambda _run: None
    )
    measured.execute()

    trials = measured.ramps[0].trials
    assert measured.ended in {DONE, TIME_LIMIT_REACHED}, measured.events
    assert trials[0].requests > 0
    assert all(trial.failed == 0 for trial in trials)
    assert find_jmeter(measured.ramps[0].arm) == []


def make_run(
    tmp_path: Path, name: str, kind: type[StackExecutor], plan: str = PLAN
) -> ExperimentRun:
    """Return a run of a plan; the same name resumes it."""
    folder = RunFolder(tmp_path / name)
    if not folder.path.exists():
        (tmp_path / "plan.toml").write_text(plan)
        state = RunState(seed=1, environment=ENVIRONMENT)
        folder.create(tmp_path / "plan.toml", state)
    stacks = kind(folder.load_plan(), tmp_path / "arms", Console(quiet=True))
    return ExperimentRun(folder.load_plan(), folder, stacks, lambda _run: None)
