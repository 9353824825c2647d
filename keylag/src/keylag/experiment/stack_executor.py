"""Executor that runs each arm as a stack of its own."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console

from keylag import load_target, processes
from keylag.experiment import interleaved_load
from keylag.experiment.plan import Plan
from keylag.experiment.run import ArmResult
from keylag.experiment.schedule import Round
from keylag.experiment.stack_setup import (
    cache_service_name,
    make_stack,
    replace_revocation_events,
    round_environment,
    stack_options,
)
from keylag.load_target import LoadTarget
from keylag.ports import PortTakenError
from keylag.stack import Stack, StackError
from keylag.stack_shutdown import stop_stacks_in
from keylag.steps import show_step


def _start_with_retry(stack: Stack) -> None:
    # A second attempt, for example on a machine that was suspended.
    try:
        stack.up()
    except (PortTakenError, StackError):
        stack.up(new_ports=True)


class StackExecutor:
    """Runs the arms as stacks below `folder`, which it empties on start.

    See keylag.experiment.run.Executor.
    """

    def __init__(
        self, plan: Plan, folder: Path, console: Console, otlp: str | None = None
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._console = console
        self._otlp = otlp
        self._stacks: dict[str, Stack] = {}

    def start(self) -> None:
        """Start the stack of every arm from its initial data."""
        # A killed run may have left stacks, also of arms that this plan lacks.
        stop_stacks_in(self._folder, recursive=False)
        shutil.rmtree(self._folder, ignore_errors=True)
        for name in self._plan.arm_names:
            arm = self._plan.resolved_arm(name)
            stack = make_stack(self._folder / name, arm)
            self._stacks[name] = stack
            with show_step(self._console, f"Starting {name}"):
                _start_with_retry(stack)
                replace_revocation_events(stack, arm)

    def begin_round(self, this_round: Round) -> None:
        """Restart the Keystone of each arm of a round, all at the same time.

        Its cache server restarts too, so that every arm begins with an empty cache.
        `serving` says what is wrong with one that does not start.
        """

        def restart(name: str) -> None:
            stack, arm = self._stacks[name], self._plan.resolved_arm(name)
            options = stack_options(
                arm, round_environment(name, this_round, self._otlp)
            )
            try:
                stack.restart("keystone", cache_service_name(arm), options=options)
            except StackError:
                # Restart the whole stack, which keeps its data.
                with suppress(PortTakenError, StackError):
                    stack.up(new_ports=True)

        with ThreadPoolExecutor(len(self._stacks)) as pool:
            list(pool.map(restart, this_round.arms))

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """Send the load of a round; arms with failed services only report them."""
        return interleaved_load.run_load_on_serving(
            self._plan, this_round, self.serving, out
        )

    @contextmanager
    def serving(self, arm: str) -> Iterator[LoadTarget]:
        """Yield the target of an arm, with a suspended cache if the plan says so.

        Raises StackError if a service has failed.
        """
        stack = self._stacks[arm]
        if failures := stack.unhealthy_services():
            raise StackError("; ".join(map(str, failures)))
        # This warns of servers that do not answer, so it comes before the suspension.
        target = load_target.from_stack(stack)
        with self._suspended_cache(arm):
            yield target

    @contextmanager
    def _suspended_cache(self, name: str) -> Iterator[None]:
        arm, folder = self._plan.resolved_arm(name), self._stacks[name].folder
        cache_servers = [
            found.process
            for found in processes.find_processes(stack=folder)
            if arm.hung_cache and found.service == cache_service_name(arm)
        ]
        for process in cache_servers:
            process.suspend()
        try:
            yield
        finally:
            for process in cache_servers:
                process.resume()

    def stop(self) -> None:
        """Stop every stack, all at the same time; logs are kept."""
        # The threads end after another Ctrl-C too, and no failure keeps others up.
        with ThreadPoolExecutor(max(1, len(self._stacks))) as pool:
            list(pool.map(Stack.down, self._stacks.values()))
