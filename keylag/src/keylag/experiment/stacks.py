"""The executor of our own arms: a stack each, loaded side by side by JMeter."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from keylag import load_target, processes
from keylag.experiment import loads
from keylag.experiment.arms import (
    cache_server,
    of_block,
    options_of,
    prepared_for,
    revoke,
    services_of,
    tools_of,
)
from keylag.experiment.plan import Plan
from keylag.experiment.run import Sent
from keylag.experiment.schedule import Block
from keylag.load_target import LoadTarget
from keylag.ports import PortTakenError
from keylag.stack import Stack, StackError


def _up(stack: Stack) -> None:
    """Start a stack; once more if it fails, as on a machine that was asleep."""
    try:
        stack.up()
    except (PortTakenError, StackError):
        stack.up(new_ports=True)


class Stacks:
    """See keylag.experiment.run.Executor; `folder` is deleted when it starts."""

    def __init__(
        self, plan: Plan, folder: Path, console: Console, otlp: str | None = None
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._console = console
        self._otlp = otlp
        self._stacks: dict[str, Stack] = {}

    def start(self) -> None:
        """Start every arm from its prepared data."""
        for name in self._plan.order:
            arm = self._plan.whole_arm(name)
            stack = Stack(
                self._folder / name,
                tools_of(arm),
                options_of(arm, {}),
                initial_data=prepared_for(arm),
                services=services_of(arm),
            )
            stack.down()
            shutil.rmtree(stack.folder, ignore_errors=True)
            self._stacks[name] = stack
            with self._console.status(f"Starting {name}"):
                _up(stack)
                revoke(stack, arm)

    def renew(self, block: Block) -> None:
        """Start every arm's Keystone and memcached afresh, side by side."""

        def one(name: str) -> None:
            stack, arm = self._stacks[name], self._plan.whole_arm(name)
            options = options_of(arm, of_block(name, block, self._otlp))
            try:
                stack.restart("keystone", options=options)
            except StackError:
                # All of it afresh; its data is still there.
                stack.up(new_ports=True)

        with ThreadPoolExecutor(len(self._stacks)) as pool:
            list(pool.map(one, self._stacks))

    def send(self, block: Block, out: Path) -> dict[str, Sent]:
        """Load the arms of a block; what goes wrong is told, not raised."""
        brought: dict[str, Sent] = {}
        targets: dict[str, LoadTarget] = {}
        for arm in block.arms:
            if sick := self._stacks[arm].unhealthy_services():
                brought[arm] = Sent([], [str(one) for one in sick])
            else:
                targets[arm] = load_target.from_stack(self._stacks[arm])
        with ExitStack() as hung:
            for arm in targets:
                hung.enter_context(self._hung_cache(arm))
            return brought | loads.load(self._plan, block, targets, out)

    @contextmanager
    def _hung_cache(self, name: str) -> Iterator[None]:
        """Freeze the server of an arm's cache, if the arm is about that."""
        arm, folder = self._plan.whole_arm(name), self._stacks[name].folder
        found = [
            mark.process
            for mark in processes.find_processes(stack=folder)
            if arm.hung_cache and mark.service == cache_server(arm)
        ]
        for process in found:
            process.suspend()
        try:
            yield
        finally:
            for process in found:
                process.resume()

    def stop(self) -> None:
        """Stop every arm; its logs stay."""
        for stack in self._stacks.values():
            stack.down()
