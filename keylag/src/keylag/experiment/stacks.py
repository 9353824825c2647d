"""The executor that measures: an arm's stack each, loaded in turn by JMeter."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Final

from rich.console import Console

from keylag import jmeter, jtl, plans, target
from keylag.experiment.arms import options_of, prepared_for, revoke, services_of
from keylag.experiment.plan import Plan
from keylag.experiment.run import Sent
from keylag.experiment.samples import rows_of
from keylag.experiment.schedule import Turn
from keylag.sending import send
from keylag.stack import Stack, StackError
from keylag.tools import Tools

FIRST_HASH_SEED: Final = 1
CLOCK_STEP_SECONDS: Final = 0.5
"""Start times of a turn over which the clock was moved by more are worth nothing."""


def _up(stack: Stack) -> None:
    """Start a stack; once more if it fails, as on a machine that was asleep."""
    try:
        stack.up()
    except StackError:
        stack.up()


class Stacks:
    """See keylag.experiment.run.Executor; `folder` is deleted when it starts."""

    def __init__(self, plan: Plan, folder: Path, console: Console) -> None:
        self._plan = plan
        self._folder = folder
        self._console = console
        self._stacks: dict[str, Stack] = {}

    def start(self) -> None:
        """Start every arm from its prepared data."""
        tools = Tools.load()
        for name in self._plan.order:
            arm = self._plan.whole_arm(name)
            stack = Stack(
                self._folder / name,
                tools,
                options_of(arm, FIRST_HASH_SEED),
                prepared=prepared_for(arm),
                services=services_of(arm),
            )
            stack.down()
            shutil.rmtree(stack.folder, ignore_errors=True)
            self._stacks[name] = stack
            with self._console.status(f"Starting {name}"):
                _up(stack)
                revoke(stack, arm)

    def renew(self, hash_seed: int) -> None:
        """Start every arm's Keystone and memcached afresh, side by side."""

        def one(stack: Stack) -> None:
            more = {**stack.options.environment, "PYTHONHASHSEED": str(hash_seed)}
            options = replace(stack.options, environment=more)
            try:
                stack.restart("keystone", options=options)
            except StackError:
                stack.up()  # all of it afresh; its data is still there

        with ThreadPoolExecutor(len(self._stacks)) as pool:
            list(pool.map(one, self._stacks.values()))

    def send(self, turn: Turn, out: Path) -> Sent:
        """Load one arm; what goes wrong is told, not raised."""
        clocks = time.time(), time.monotonic()
        try:
            result = self._load(turn, out)
            samples, notes = jtl.read(result.samples)
        except (jmeter.JMeterError, jtl.JtlError, target.TargetError) as error:
            return Sent([], [str(error)])
        if result.interrupted:
            raise KeyboardInterrupt
        moved = time.time() - clocks[0] - (time.monotonic() - clocks[1])
        if abs(moved) > CLOCK_STEP_SECONDS:
            return Sent([], [f"the clock was set by {moved:+.1f} s"])
        return Sent(rows_of(turn, samples, self._plan.design.warm_up_seconds), notes)

    def _load(self, turn: Turn, out: Path) -> jmeter.Result:
        design = self._plan.design
        seconds = ceil(design.warm_up_seconds + design.turn_seconds)
        chosen = {
            **self._plan.load.chosen,
            "loops": "-1",
            "duration_seconds": str(seconds),
        }
        where = target.of_stack(self._stacks[turn.arm])
        load = plans.find(self._plan.load.plan)
        return send(load, where, chosen, out, Console(quiet=True))

    def stop(self) -> None:
        """Stop every arm; its logs stay."""
        for stack in self._stacks.values():
            stack.down()
