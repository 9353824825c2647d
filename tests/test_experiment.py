"""An experiment on real stacks: two arms, ended by Ctrl-C after the first block."""

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
from keylag.experiment import known, report
from keylag.experiment.arms import PLANS
from keylag.experiment.journal import INTERRUPTED, Folder, Journal
from keylag.experiment.reading import PlanError, read
from keylag.experiment.run import Run, Sent
from keylag.experiment.schedule import Block
from keylag.experiment.stacks import Stacks
from keylag.stack import Stack
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
ENVIRONMENT = {"busy_before": 0.1, "arms": {}}
OF_STACKS = [
    path.stem for path in sorted(PLANS.glob("*.toml")) if not read(path).elsewhere
]
ASKED = "SELECT @@max_connections, (SELECT COUNT(*) FROM revocation_event)"


class Watched(Stacks):
    """Asks each arm's database what it is, and is interrupted in the second block."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.found: dict[str, tuple[int, int]] = {}

    def send(self, block: Block, out: Path) -> dict[str, Sent]:
        """Load as ever, in the first block."""
        if block.number:
            raise KeyboardInterrupt
        self.found = {arm: ask(self._stacks[arm]) for arm in block.arms}
        return super().send(block, out)


def ask(stack: Stack) -> tuple[int, int]:
    """Return how many connections a database allows, and its revocation events."""
    password = load_secrets(stack.data).database
    place = {"host": "127.0.0.1", "port": stack.port("mariadb"), "database": "keystone"}
    connection = pymysql.connect(user="keystone", password=password, **place)
    with connection, connection.cursor() as cursor:
        cursor.execute(ASKED)
        return cursor.fetchone()


def test_an_option_that_keystone_lacks_is_refused(tmp_path: Path) -> None:
    """Keystone itself is asked; it would pass over the option without a word."""
    path = tmp_path / "plan.toml"
    path.write_text(PLAN + "keystone.identity.password_hash_round = 10\n")

    with pytest.raises(PlanError, match=r":18: .*no such option in \[identity\]"):
        known.check(read(path), path)
    path.write_text(PLAN + "keystone.identity.password_hash_rounds = 10\n")
    known.check(read(path), path)


class Ended(Stacks):
    """Is interrupted in the block `at`."""

    at = 1

    def send(self, block: Block, out: Path) -> dict[str, Sent]:
        """Load as ever, up to there."""
        if block.number >= self.at:
            raise KeyboardInterrupt
        return super().send(block, out)


@pytest.mark.matrix
@pytest.mark.parametrize("name", OF_STACKS)
def test_a_block_of_every_plan_that_ships(name: str, tmp_path: Path) -> None:
    """Each arm starts and is loaded; only one with a hung cache may fail."""
    path = PLANS / f"{name}.toml"
    plan = read(path)
    short = plan.design.model_copy(update={"warm_up_seconds": 0, "turn_seconds": 8})
    plan = plan.model_copy(update={"design": short})
    try:
        known.check(plan, path)
    except ToolError as missing:
        pytest.skip(str(missing))
    folder = Folder(tmp_path / "out")
    folder.create(path, Journal(seed=1, environment=ENVIRONMENT))
    stacks = Ended(plan, tmp_path / "arms", Console(quiet=True))

    under_way = Run(plan, folder, stacks, lambda _run: None)
    under_way.go()

    answered = {row.arm for row in folder.rows() if row.success}
    may_fail = {arm for arm in plan.order if plan.whole_arm(arm).hung_cache}
    assert under_way.journal.ended == INTERRUPTED, under_way.journal.events
    assert answered | may_fail == set(plan.order), under_way.journal.events


@pytest.mark.matrix
def test_two_arms_of_one_plan(tmp_path: Path) -> None:
    """Each arm is what the plan says, and its samples tell what Keystone did."""
    under_way = run_of(tmp_path, "out", Watched)
    under_way.go()
    folder, stacks = under_way.folder, under_way.executor
    report.write(folder)

    rows = {
        arm: [row for row in folder.rows() if row.arm == arm] for arm in stacks.found
    }
    assert under_way.journal.ended == INTERRUPTED, under_way.journal.events
    assert under_way.journal.blocks == 1
    assert stacks.found == {"pool": (300, 0), "none": (77, 40)}
    assert all(len(found) > 2 for found in rows.values())
    assert all(row.success and row.method == "GET" for row in folder.rows())
    assert rows["none"][-1].measured["sql_statements"] > 20
    assert rows["pool"][-1].measured["sql_statements"] < 20
    assert "cannot tell yet" in (folder.path / "report.html").read_text()


class Unlucky(Ended):
    """One arm loses Keystone in the first block, the other JMeter in the second."""

    at = 2

    def send(self, block: Block, out: Path) -> dict[str, Sent]:
        """Load as ever, while somebody may kill a program."""
        if block.number >= self.at:
            raise KeyboardInterrupt
        arm = ("none", "pool")[block.number]
        samples = out / arm / "samples.jtl"
        samples.unlink(missing_ok=True)
        find = (self._keystone, jmeter)[block.number]
        with ThreadPoolExecutor() as pool:
            killed = pool.submit(kill, find, arm, samples)
            brought = super().send(block, out)
            killed.result()
        return brought

    def _keystone(self, arm: str) -> list[psutil.Process]:
        found = processes.find_processes(stack=self._stacks[arm].folder)
        return [mark.process for mark in found if mark.service == "keystone"]


def kill(find: Callable[[str], list[psutil.Process]], arm: str, samples: Path) -> None:
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
    """What was measured stays, what went wrong is told, the next block is whole."""
    under_way = run_of(tmp_path, "unlucky", Unlucky)
    under_way.go()
    rows = under_way.folder.rows()
    events = "\n".join(under_way.journal.events)

    assert under_way.journal.ended == INTERRUPTED, events
    assert any(not row.success for row in rows if (row.block, row.arm) == (0, "none"))
    assert "block 1, arm pool: JMeter ended with code" in events
    whole = [row.success for row in rows if (row.block, row.arm) == (1, "none")]
    assert whole
    assert all(whole)
    report.write(under_way.folder)
    said = (under_way.folder.path / "report.md").read_text()
    assert "cannot tell yet" in said
    assert "JMeter ended" in said


@pytest.mark.matrix
def test_an_interrupted_run_goes_on_in_the_same_order(tmp_path: Path) -> None:
    """Three blocks, with and without Ctrl-C in the second."""
    whole = run_of(tmp_path, "whole", type("Third", (Ended,), {"at": 3}))
    whole.go()
    for at in (1, 3):
        broken = run_of(tmp_path, "broken", type("Part", (Ended,), {"at": at}))
        broken.go()

    orders = [
        list(dict.fromkeys((r.block, r.position, r.arm) for r in run.folder.rows()))
        for run in (whole, broken)
    ]
    assert orders[0] == orders[1]
    assert len(orders[0]) == 6


def run_of(tmp_path: Path, name: str, kind: type[Stacks]) -> Run:
    """Return a run of the plan above; with the same name it goes on."""
    folder = Folder(tmp_path / name)
    if not folder.path.exists():
        (tmp_path / "plan.toml").write_text(PLAN)
        begun = Journal(seed=1, environment=ENVIRONMENT)
        folder.create(tmp_path / "plan.toml", begun)
    stacks = kind(folder.plan(), tmp_path / "arms", Console(quiet=True))
    return Run(folder.plan(), folder, stacks, lambda _run: None)
