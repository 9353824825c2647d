"""The load of a round: a JMeter for each arm, all at once, each in its own slices.

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

from keylag import jmeter, jtl, plans
from keylag.experiment.plan import Design, Plan
from keylag.experiment.run import ArmResult
from keylag.experiment.samples import MeasurementWindow, rows_of_arm
from keylag.experiment.schedule import Round
from keylag.follow import Progress
from keylag.sending import home, load_of
from keylag.target import Target

MAX_CLOCK_STEP_SECONDS: Final = 0.5
"""Start times over which the clock was moved by more are worth nothing."""
ABANDONED_LOAD_SECONDS: Final = 300
"""After so long more than planned, a JMeter that nobody ends is over by itself."""

JMeterResult = tuple[Sequence[jtl.Sample], Sequence[str]]
"""What an arm's JMeter brought, and what went wrong."""


def run_load(
    plan: Plan, this_round: Round, targets: Mapping[str, Target], out: Path
) -> dict[str, ArmResult]:
    """Send the load to these arms of a round; what goes wrong is told, not raised.

    Raises KeyboardInterrupt after Ctrl-C.
    """
    clock_step = track_clock_steps()
    results = _run_all(plan, targets, out)
    if abs(seconds := clock_step()) > MAX_CLOCK_STEP_SECONDS:
        nothing = ArmResult([], [f"the clock was set by {seconds:+.1f} s"])
        return dict.fromkeys(targets, nothing)
    window = _measurement_window(
        plan.design, [samples for samples, _ in results.values()]
    )
    return {
        arm: ArmResult(rows_of_arm(this_round, arm, samples, window), problems)
        for arm, (samples, problems) in results.items()
    }


def track_clock_steps(
    wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
) -> Callable[[], float]:
    """Return what tells by how many seconds the clock was set since this call."""
    ahead = wall() - steady()
    return lambda: wall() - steady() - ahead


def _measurement_window(
    design: Design, loads: Collection[Sequence[jtl.Sample]]
) -> MeasurementWindow:
    """Return the time of all turns, from when all that answered were warm."""
    starts = [
        min(sample.start_seconds for sample in samples if not sample.is_setup)
        for samples in loads
        if any(not sample.is_setup for sample in samples)
    ]
    begin = max(starts, default=0.0) + design.warm_up_seconds
    return MeasurementWindow(begin, begin + len(loads) * design.turn_seconds)


@dataclass
class SharedDeadline:
    """Ends all loads of a round at once, `seconds` after the last one has begun.

    That is noticed when its first request has ended, so the end is late by a cold
    request's time: those that others have under way can end, too.
    """

    not_started: set[str]
    seconds: float
    deadline: float = inf

    def has_passed(self, arm: str, seen: Progress) -> bool:
        """Tell whether to end an arm's load."""
        if seen.done:
            self.mark_started(arm)
        return time.monotonic() > self.deadline

    def mark_started(self, arm: str) -> None:
        """Know that an arm's load has begun, or never will."""
        self.not_started.discard(arm)
        if not self.not_started:
            self.deadline = min(self.deadline, time.monotonic() + self.seconds)

    def expire(self) -> None:
        """End all of them."""
        self.deadline = -inf


def _run_all(
    plan: Plan, targets: Mapping[str, Target], out: Path
) -> dict[str, JMeterResult]:
    deadline = SharedDeadline(set(targets), plan.design.load_seconds(len(targets)))
    with ThreadPoolExecutor(len(targets) or 1) as pool:
        try:
            futures = {
                arm: pool.submit(
                    _run_jmeter,
                    _jmeter_load(plan, list(targets), arm, target),
                    out,
                    arm,
                    deadline,
                )
                for arm, target in targets.items()
            }
            return {arm: future.result() for arm, future in futures.items()}
        finally:
            deadline.expire()


def _run_jmeter(
    load: jmeter.Load, out: Path, arm: str, deadline: SharedDeadline
) -> JMeterResult:
    """Run JMeter in a thread of its own."""
    try:
        result = jmeter.run(
            load,
            home=home(),
            out=out / arm,
            is_over=lambda seen: deadline.has_passed(arm, seen),
        )
        return jtl.read(result.samples)
    except (jmeter.JMeterError, jtl.JtlError) as error:
        return [], [str(error)]
    finally:
        deadline.mark_started(arm)


def _jmeter_load(
    plan: Plan, arms: Sequence[str], arm: str, target: Target
) -> jmeter.Load:
    design = plan.design
    seconds = design.load_seconds(len(arms))
    chosen = {
        **plan.load_properties(arm),
        "loops": "-1",
        "duration_seconds": str(ceil(seconds) + ABANDONED_LOAD_SECONDS),
        "slice_ms": str(design.slice_ms if len(arms) > 1 else 0),
        "slice_loads": str(len(arms)),
        "slice_number": str(arms.index(arm)),
        "slice_after_seconds": str(design.warm_up_seconds),
    }
    return load_of(plans.find(plan.load.plan), target, chosen)
