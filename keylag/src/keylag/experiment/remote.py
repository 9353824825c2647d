"""Executors for Keystones that run already: one that is switched, or one for each arm.

State that a command leaves behind, such as a warm database or a full cache, is part of
the measurement.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from keylag import load_plans, load_target
from keylag.experiment import interleaved_load
from keylag.experiment.plan import Plan, RemoteKeystone, with_variables
from keylag.experiment.remote_access import (
    check_access,
    sends_breakdowns,
    wait_until_it_answers,
)
from keylag.experiment.run import ArmResult
from keylag.experiment.schedule import Round
from keylag.experiment.shell_command import run_command
from keylag.launcher import StackError
from keylag.load_target import LoadTarget
from keylag.steps import show_step


def remote_targets(plan: Plan, remote: RemoteKeystone) -> dict[str, LoadTarget]:
    """Return the target of the load of each arm.

    Raises TargetError for an invalid address or file of users, and WrongUsageError for
    a variable that is not set.
    """
    users = Path(with_variables(remote.users))
    return {
        name: load_target.from_url(plan.keystone_url(name), users)
        for name in plan.arm_names
    }


class SwitchedExecutor:
    """Switches one Keystone between the arms, and back to the base at the end.

    `target` is its stack, if it has one.  See keylag.experiment.run.Executor.
    """

    def __init__(
        self, plan: Plan, remote: RemoteKeystone, target: LoadTarget | None = None
    ) -> None:
        self._plan = plan
        self._url = plan.keystone_url(plan.base)
        self._target = target or remote_targets(plan, remote)[plan.base]
        self._is_warm = False

    def start(self) -> None:
        """Switch to the base and log in; raises StackError if one of them fails."""
        self._switch_to(self._plan.base)
        load = load_plans.find_plan(self._plan.load.plan)
        check_access(self._url, self._target, load)

    def begin_round(self, this_round: Round) -> None:
        """Do nothing: a switch command restarts Keystone if the operator wants that."""

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """Switch to each arm and send its load; problems are in the results.

        Before the first round, the base has a turn that does not count: that of the
        first arm would fill Keystone's caches for the others.
        """
        if not self._is_warm:
            base = self._plan.base
            turn = replace(this_round, arms=[base])
            targets = {base: self._target}
            interleaved_load.run_load(self._plan, turn, targets, out / "warm-up")
            self._is_warm = True
        results: dict[str, ArmResult] = {}
        for arm in this_round.arms:
            try:
                with self.serving(arm) as target:
                    results |= interleaved_load.run_load(
                        self._plan, this_round, {arm: target}, out
                    )
            except StackError as error:
                results[arm] = ArmResult([], [str(error)])
        return results

    @contextmanager
    def serving(self, arm: str) -> Iterator[LoadTarget]:
        """Switch to an arm and yield its target; raises StackError."""
        self._switch_to(arm)
        yield self._target

    def stop(self) -> None:
        """Switch back to the base."""
        self._switch_to(self._plan.base)

    def _switch_to(self, name: str) -> None:
        run_command(self._plan.arms[name].switch)
        wait_until_it_answers(self._url)


class RemoteArmsExecutor:
    """Sends the load to the Keystone of each arm, at its URL.

    See keylag.experiment.run.Executor.
    """

    def __init__(self, plan: Plan, remote: RemoteKeystone, console: Console) -> None:
        self._plan = plan
        self._console = console
        self._targets = remote_targets(plan, remote)

    def start(self) -> None:
        """Log in at each Keystone; raises StackError if one refuses."""
        load = load_plans.find_plan(self._plan.load.plan)
        for name, target in self._targets.items():
            url = self._plan.keystone_url(name)
            with show_step(self._console, f"Logging in at {name}, {url}"):
                check_access(url, target, load)
            if not sends_breakdowns(url):
                self._console.print(
                    f"{name} sends no Server-Timing of Keylag: of its requests there "
                    "will be the latency at the client, without parts.",
                    highlight=False,
                    markup=False,
                    soft_wrap=True,
                )

    def begin_round(self, this_round: Round) -> None:
        """Do nothing: the failed restart of an arm is in its result of the round."""

    def run_round(self, this_round: Round, out: Path) -> dict[str, ArmResult]:
        """Restart the arms that have a command for it, and send the load to all."""
        return interleaved_load.run_load_on_serving(
            self._plan, this_round, self.serving, out
        )

    @contextmanager
    def serving(self, arm: str) -> Iterator[LoadTarget]:
        """Restart an arm that has a command for it; raises StackError."""
        settings = self._plan.arms[arm]
        if settings.restart:
            run_command(settings.restart)
            wait_until_it_answers(self._plan.keystone_url(arm))
        yield self._targets[arm]

    def stop(self) -> None:
        """Do nothing: the Keystones are the operator's."""
