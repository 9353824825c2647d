"""The stacks of all tunings, a client of each, and the program that measures parts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

from rich.console import Console

from keylag import users_csv
from keylag.experiment.plan import Decision, Load, Plan
from keylag.experiment.schedule import Round
from keylag.experiment.stack_executor import StackExecutor
from keylag.services import keystone
from keylag.services.base import ServiceContext
from keylag.stack_database import connect
from keylag.stack_info import StackInfo
from keylag.stack_record import load_secrets
from keylag.tools import Tools
from keylag_bench.keystone_processes import WorkerProcess
from keylag_bench.limits.client import Client, Sample
from keylag_bench.limits.tables import (
    CALLS,
    FRAMEWORK,
    HASHES,
    PARTS,
    REFERENCE,
    TUNINGS,
)

PROGRAM = Path(__file__).parents[2] / "inside" / "limit_parts.py"
REPLACE_HASH = """\
UPDATE password JOIN local_user ON local_user.id = password.local_user_id
SET password.password_hash = %s WHERE local_user.name = %s"""

Key = tuple[str, str]
"""("part", part) or (tuning, call)."""
PART = "part"
Take = Callable[[int], Sequence[Sample]]
"""Makes that many runs or requests."""


def plan() -> Plan:
    """Return the arms as those of an experiment, one for each kind of stack."""
    base, *_ = TUNINGS
    return Plan(
        question="",
        base=base,
        load=Load(plan="token-validate"),
        decision=Decision(method="GET"),
        arms={name: one.arm for name, one in TUNINGS.items() if not one.query},
    )


def arm_of(tuning: str) -> str:
    """Return the name of the first tuning with the same servers."""
    arm = TUNINGS[tuning].arm
    return next(name for name, one in TUNINGS.items() if one.arm == arm)


class Servers:
    """Starts the stacks below a folder."""

    def __init__(self, folder: Path, console: Console) -> None:
        self._folder = folder
        self._plan = plan()
        self._executor = StackExecutor(self._plan, folder, console)
        self.facts: dict[str, Any] = {}
        """What the program says of the parts."""

    def __enter__(self) -> Self:
        try:
            self._executor.start()
        except BaseException:
            self._executor.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.stop()

    @contextmanager
    def restarted(self, number: int, hash_seed: int) -> Iterator[Mapping[Key, Take]]:
        """Restart Keystone and its cache in all stacks; yield what can be measured.

        Raises StackError if a server fails.
        """
        names = self._plan.arm_names
        self._executor.begin_round(Round(number, names, hash_seed))
        with ExitStack() as served:
            targets = {
                arm: served.enter_context(self._executor.serving(arm)) for arm in names
            }
            reference = Client(targets[REFERENCE])
            program = served.enter_context(closing(self._program()))
            file = Path(targets[REFERENCE].properties["users_file"])
            users = users_csv.read_rows(file)
            self.facts = program.prepare(reference, users)
            for arm in names:
                self._replace_hash(arm, users[HASHES["least"].user_row]["username"])
            clients = {
                name: Client(targets[arm_of(name)], one.query)
                for name, one in TUNINGS.items()
            }
            yield {
                **{(PART, name): partial(program.measure, name) for name in PARTS},
                (PART, FRAMEWORK): partial(_requests, reference, FRAMEWORK),
                **{
                    (name, call): partial(_requests, client, call)
                    for name, client in clients.items()
                    for call in CALLS
                },
            }

    def _replace_hash(self, arm: str, user: str) -> None:
        with (
            connect(self._folder / arm) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(REPLACE_HASH, (self.facts["hashes"]["least"], user))

    def _program(self) -> "PartsProgram":
        stack = StackInfo(self._folder / REFERENCE)
        context = ServiceContext(
            folder=stack.folder,
            tools=Tools.load(collector=False),
            options=stack.options,
            ports=stack.ports,
            secrets=load_secrets(stack.data),
        )
        return PartsProgram(context)


class PartsProgram:
    """Keystone's interpreter with `inside/limit_parts.py`."""

    def __init__(self, context: ServiceContext) -> None:
        python = context.tools.keystone / "bin" / "python"
        variables = keystone.oslo_variables(context)
        self._process = WorkerProcess(
            [str(python), str(PROGRAM)],
            context.environment("limit-parts", variables),
            context.log("limit-parts"),
        )

    def prepare(
        self, client: Client, users: Sequence[Mapping[str, str]]
    ) -> dict[str, Any]:
        """Give the program a token and passwords; return its facts about the parts."""
        token, body = client.issue()
        hashes = {
            name: [users[one.user_row]["password"], one.algorithm, one.rounds]
            for name, one in HASHES.items()
        }
        order = {"token": token, "body": body, "hashes": hashes}
        return self._process.send_order(order)

    def measure(self, part: str, runs: int) -> list[Sample]:
        """Run a part; raises StackError if the program fails."""
        reply = self._process.send_order({"part": part, "runs": runs})
        return [Sample({PARTS[part].category: one}) for one in reply["seconds"]]

    def close(self) -> None:
        """End the program."""
        self._process.stop()


def _requests(client: Client, name: str, requests: int) -> list[Sample]:
    return [client.measure(name) for _ in range(requests)]
