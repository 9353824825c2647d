"""The load of a block: a JMeter for each arm, all at once, each in its own slices.

The speed of a machine changes from second to second, by more than what is looked for.
So the arms take turns by slices of a fraction of a second, and what the machine does
is in all of them alike.  First all warm up together; what counts begins when that is
over for the last of them, and is a whole number of slices of each.

A request counts by its start.  One that reaches into another arm's slice stays:
without it, slow requests would be missing.  A load begins none near the end of its
slice, so that few do.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil, inf
from pathlib import Path
from typing import Final

from keylag import jmeter, jtl, load_plans
from keylag.experiment.plan import Design, Plan
from keylag.experiment.run import Sent
from keylag.experiment.samples import Window, rows_of
from keylag.experiment.schedule import Block
from keylag.jmeter_progress import Progress
from keylag.load_runner import build_load, jmeter_home
from keylag.load_target import LoadTarget

CLOCK_STEP_SECONDS: Final = 0.5
"""Start times over which the clock was moved by more are worth nothing."""
LEFT_ALONE_SECONDS: Final = 300
"""After so long more than planned, a JMeter that nobody ends is over by itself."""

Answers = tuple[Sequence[jtl.Sample], Sequence[str]]
"""What an arm's JMeter brought, and what went wrong."""


def load(
    plan: Plan, block: Block, targets: Mapping[str, LoadTarget], out: Path
) -> dict[str, Sent]:
    """Send the load to these arms of a block; what goes wrong is told, not raised.

    Raises KeyboardInterrupt after Ctrl-C.
    """
    moved = clock()
    answers = _send(plan, targets, out)
    if abs(seconds := moved()) > CLOCK_STEP_SECONDS:
        nothing = Sent([], [f"the clock was set by {seconds:+.1f} s"])
        return dict.fromkeys(targets, nothing)
    window = _window(plan.design, [samples for samples, _ in answers.values()])
    return {
        arm: Sent(rows_of(block, arm, samples, window), notes)
        for arm, (samples, notes) in answers.items()
    }


def clock(
    wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
) -> Callable[[], float]:
    """Return what tells by how many seconds the clock was set since this call."""
    ahead = wall() - steady()
    return lambda: wall() - steady() - ahead


def _window(design: Design, loads: Collection[Sequence[jtl.Sample]]) -> Window:
    """Return the time of all turns, from when all that answered were warm."""
    begun = [
        min(sample.start_seconds for sample in samples if not sample.is_setup)
        for samples in loads
        if any(not sample.is_setup for sample in samples)
    ]
    begin = max(begun, default=0.0) + design.warm_up_seconds
    return Window(begin, begin + len(loads) * design.turn_seconds)


@dataclass
class Ending:
    """Ends all loads of a block at once, `seconds` after the last one has begun.

    That is noticed when its first request has ended, so the end is late by a cold
    request's time: those that others have under way can end, too.
    """

    awaited: set[str]
    seconds: float
    at: float = inf

    def is_over(self, arm: str, seen: Progress) -> bool:
        """Tell whether to end an arm's load."""
        if seen.done:
            self.await_no_more(arm)
        return time.monotonic() > self.at

    def await_no_more(self, arm: str) -> None:
        """Know that an arm's load has begun, or never will."""
        self.awaited.discard(arm)
        if not self.awaited:
            self.at = min(self.at, time.monotonic() + self.seconds)

    def now(self) -> None:
        """End all of them."""
        self.at = -inf


def _send(
    plan: Plan, targets: Mapping[str, LoadTarget], out: Path
) -> dict[str, Answers]:
    ending = Ending(set(targets), plan.design.load_seconds(len(targets)))
    with ThreadPoolExecutor(len(targets) or 1) as pool:
        try:
            sending = {
                arm: pool.submit(
                    _answers, _load(plan, list(targets), arm, where), out, arm, ending
                )
                for arm, where in targets.items()
            }
            return {arm: answers.result() for arm, answers in sending.items()}
        finally:
            ending.now()


def _answers(load: jmeter.Load, out: Path, arm: str, ending: Ending) -> Answers:
    """Run JMeter in a thread of its own."""
    try:
        result = jmeter.run(
            load,
            home=jmeter_home(),
            out=out / arm,
            should_stop=lambda seen: ending.is_over(arm, seen),
        )
        return jtl.read_samples(result.samples)
    except (jmeter.JMeterError, jtl.JtlError) as error:
        return [], [str(error)]
    finally:
        ending.await_no_more(arm)


def _load(plan: Plan, arms: Sequence[str], arm: str, where: LoadTarget) -> jmeter.Load:
    design = plan.design
    seconds = design.load_seconds(len(arms))
    chosen = {
        **plan.properties(arm),
        "loops": "-1",
        "duration_seconds": str(ceil(seconds) + LEFT_ALONE_SECONDS),
        "slice_ms": str(design.slice_ms if len(arms) > 1 else 0),
        "slice_loads": str(len(arms)),
        "slice_number": str(arms.index(arm)),
        "slice_after_seconds": str(design.warm_up_seconds),
    }
    return build_load(load_plans.find_plan(plan.load.plan), where, chosen)
