"""One turn: the load of a plan, sent to one arm, as rows."""

import time
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Final

from rich.console import Console

from keylag import jmeter, jtl, plans
from keylag.experiment.plan import Plan
from keylag.experiment.run import Sent
from keylag.experiment.samples import rows_of
from keylag.experiment.schedule import Turn
from keylag.sending import send
from keylag.target import Target

CLOCK_STEP_SECONDS: Final = 0.5
"""Start times of a turn over which the clock was moved by more are worth nothing."""


def load(plan: Plan, turn: Turn, where: Target, out: Path) -> Sent:
    """Send a turn's load; what goes wrong is told, not raised.

    Raises KeyboardInterrupt after Ctrl-C.
    """
    moved = clock()
    try:
        result = _send(plan, turn, where, out)
        if result.interrupted:
            raise KeyboardInterrupt
        samples, notes = jtl.read(result.samples)
    except (jmeter.JMeterError, jtl.JtlError) as error:
        return Sent([], [str(error)])
    if abs(seconds := moved()) > CLOCK_STEP_SECONDS:
        return Sent([], [f"the clock was set by {seconds:+.1f} s"])
    return Sent(rows_of(turn, samples, plan.design.warm_up_seconds), notes)


def clock(
    wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
) -> Callable[[], float]:
    """Return what tells by how many seconds the clock was set since this call."""
    ahead = wall() - steady()
    return lambda: wall() - steady() - ahead


def _send(plan: Plan, turn: Turn, where: Target, out: Path) -> jmeter.Result:
    design = plan.design
    chosen = {
        **plan.properties(turn.arm),
        "loops": "-1",
        "duration_seconds": str(ceil(design.warm_up_seconds + design.turn_seconds)),
    }
    return send(plans.find(plan.load.plan), where, chosen, out, Console(quiet=True))
