"""An experiment on real stacks: two arms, ended by Ctrl-C after the first block."""

from pathlib import Path

import pymysql
import pytest
from rich.console import Console

from keylag.experiment import known, report
from keylag.experiment.arms import PLANS
from keylag.experiment.journal import INTERRUPTED, Folder, Journal
from keylag.experiment.plan import Design
from keylag.experiment.reading import PlanError, read
from keylag.experiment.run import Run, Sent
from keylag.experiment.schedule import Turn
from keylag.experiment.stacks import Stacks
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
[decision]
method = "GET"
[arms.pool]
processes = 1
[arms.none]
cache = "null"
mariadb.max_connections = 77
revocation_events = 40
"""
ENVIRONMENT = {"load_before": 0.1, "processors": 2, "arms": {}}
OF_STACKS = [
    path.stem for path in sorted(PLANS.glob("*.toml")) if not read(path).elsewhere
]
ASKED = "SELECT @@max_connections, (SELECT COUNT(*) FROM revocation_event)"


class Watched(Stacks):
    """Asks each arm's database what it is, and is interrupted in the second block."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.found: dict[str, tuple[int, int]] = {}

    def send(self, turn: Turn, out: Path) -> Sent:
        """Load as ever, in the first block."""
        if turn.block:
            raise KeyboardInterrupt
        self.found[turn.arm] = ask(self._stacks[turn.arm])
        return super().send(turn, out)


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

    with pytest.raises(PlanError, match=r":17: .*no such option in \[identity\]"):
        known.check(read(path), path)
    path.write_text(PLAN + "keystone.identity.password_hash_rounds = 10\n")
    known.check(read(path), path)


class OneBlock(Stacks):
    """Is interrupted in the second block."""

    def send(self, turn: Turn, out: Path) -> Sent:
        """Load as ever, in the first block."""
        if turn.block:
            raise KeyboardInterrupt
        return super().send(turn, out)


@pytest.mark.matrix
@pytest.mark.parametrize("name", OF_STACKS)
def test_a_block_of_every_plan_that_ships(name: str, tmp_path: Path) -> None:
    """Each arm starts and is loaded; only one with a hung cache may fail."""
    path = PLANS / f"{name}.toml"
    short = Design(warm_up_seconds=0, turn_seconds=2)
    plan = read(path).model_copy(update={"design": short})
    try:
        known.check(plan, path)
    except ToolError as missing:
        pytest.skip(str(missing))
    folder = Folder(tmp_path / "out")
    folder.create(path, Journal(seed=1, environment=ENVIRONMENT))
    stacks = OneBlock(plan, tmp_path / "arms", Console(quiet=True))

    under_way = Run(plan, folder, stacks, lambda _run: None)
    under_way.go()

    answered = {row.arm for row in folder.rows() if row.success}
    may_fail = {arm for arm in plan.order if plan.whole_arm(arm).hung_cache}
    assert under_way.journal.ended == INTERRUPTED, under_way.journal.events
    assert answered | may_fail == set(plan.order), under_way.journal.events


@pytest.mark.matrix
def test_two_arms_of_one_plan(tmp_path: Path) -> None:
    """Each arm is what the plan says, and its samples tell what Keystone did."""
    (tmp_path / "plan.toml").write_text(PLAN)
    folder = Folder(tmp_path / "out")
    folder.create(tmp_path / "plan.toml", Journal(seed=1, environment=ENVIRONMENT))
    stacks = Watched(folder.plan(), tmp_path / "arms", Console(quiet=True))

    under_way = Run(folder.plan(), folder, stacks, lambda _run: None)
    under_way.go()
    report.write(folder)

    rows = {
        arm: [row for row in folder.rows() if row.arm == arm] for arm in stacks.found
    }
    assert under_way.journal.ended == INTERRUPTED, under_way.journal.events
    assert under_way.journal.turns == 2
    assert stacks.found == {"pool": (300, 0), "none": (77, 40)}
    assert all(len(found) > 2 for found in rows.values())
    assert all(row.success and row.method == "GET" for row in folder.rows())
    assert rows["none"][-1].measured["sql_statements"] > 20
    assert rows["pool"][-1].measured["sql_statements"] < 20
    assert "cannot tell yet" in (folder.path / "report.html").read_text()
