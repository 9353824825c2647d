"""Send the load of a round to all arms, interleaved in short slices.

The speed of a machine changes from second to second by more than the effects that an
experiment looks for.  Therefore each arm has a JMeter of its own, all run at the same
time, and they take turns in slices of a fraction of a second: changes of the machine
affect all arms alike.  All arms warm up together.  The measurement starts when the
last arm is warm and lasts a whole number of slices of each arm.

A request counts by its start.  A request that reaches into the slice of another arm
counts too; without such requests, slow ones would be missing.  There are few of them,
because JMeter starts no request near the end of a slice.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from math import ceil, inf
from pathlib import Path
from typing import Final

from keylag import jmeter, jtl, load_plans
from keylag.experiment.plan import Design, Plan
from keylag.experiment.run import ArmResult
from keylag.experiment.samples import MeasurementWindow, rows_of_arm
from keylag.experiment.schedule import Round
from keylag.jmeter_process import JMeterError
from keylag.jmeter_progress import Progress
from keylag.launcher import StackError
from keylag.load_runner import build_load, jmeter_home
from keylag.load_target import LoadTarget

MAX_CLOCK_STEP_SECONDS: Final = 0.5
"""The samples of a round are discarded if the clock was set by more than this."""
ABANDONED_LOAD_SECONDS: Final = 300
"""How long after its planned end an orphaned JMeter ends by itself."""

JMeterResult = tuple[Sequence[jtl.Sample], Sequence[str]]
"""The samples of an arm, and problems as sentences."""


def run_load_on_serving(
    plan: Plan,
    this_round: Round,
    serving: Callable[[str], AbstractContextManager[LoadTarget]],
    out: Path,
) -> dict[str, ArmResult]:
    """Send the load of a round to the arms while `serving` has their targets.

    An arm for which it raises StackError gets no load; the error is in its result.
    """
    failed: dict[str, ArmResult] = {}
    targets: dict[str, LoadTarget] = {}
    with ExitStack() as served:
        for arm in this_round.arms:
            try:
                targets[arm] = served.enter_context(serving(arm))
            except StackError as error:
                failed[arm] = ArmResult([], [str(error)])
        return failed | run_load(plan, this_round, targets, out)


def run_load(
    plan: Plan, this_round: Round, targets: Mapping[str, LoadTarget], out: Path
) -> dict[str, ArmResult]:
    """Send the load of a round to the `targets`, by arm.

    Problems with an arm are in its result.  Raises KeyboardInterrupt after Ctrl-C.
    """
    clock_step = track_clock_steps()
    results = _run_all(plan, targets, out)
    if abs(seconds := clock_step()) > MAX_CLOCK_STEP_SECONDS:
        nothing = ArmResult([], [f"the system clock was set by {seconds:+.1f} s"])
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
    """Return a function that returns by how many seconds the clock was set since."""
    ahead = wall() - steady()
    return lambda: wall() - steady() - ahead


def _measurement_window(
    design: Design, loads: Collection[Sequence[jtl.Sample]]
) -> MeasurementWindow:
    # From the time when all arms that answered are warm.
    starts = [
        min(sample.start_seconds for sample in samples if not sample.is_setup)
        for samples in loads
        if any(not sample.is_setup for sample in samples)
    ]
    begin = max(starts, default=0.0) + design.warm_up_seconds
    return MeasurementWindow(begin, begin + len(loads) * design.turn_seconds)


@dataclass
class SharedDeadline:
    """The common end of all loads of a round, `seconds` after the last one started.

    A load counts as started when its first request has ended.  The deadline is late by
    the duration of that request, in which requests of the other arms can end too.
    """

    not_started: set[str]
    seconds: float
    expires_at: float = inf
    """In seconds of time.monotonic."""

    def has_passed(self, arm: str, progress: Progress) -> bool:
        """Return whether to end the load of an arm, given its progress."""
        if progress.done:
            self.mark_started(arm)
        return time.monotonic() > self.expires_at

    def mark_started(self, arm: str) -> None:
        """Record that the load of an arm has started, or failed to."""
        self.not_started.discard(arm)
        if not self.not_started:
            self.expires_at = min(self.expires_at, time.monotonic() + self.seconds)

    def expire(self) -> None:
        """End all loads now."""
        self.expires_at = -inf


def _run_all(
    plan: Plan, targets: Mapping[str, LoadTarget], out: Path
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
    try:
        result = jmeter.run(
            load,
            home=jmeter_home(),
            out=out / arm,
            should_stop=lambda progress: deadline.has_passed(arm, progress),
        )
        return jtl.read_samples(result.samples)
    except (JMeterError, jtl.JtlError) as error:
        return [], [str(error)]
    finally:
        deadline.mark_started(arm)


def _jmeter_load(
    plan: Plan, arms: Sequence[str], arm: str, target: LoadTarget
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
    return build_load(load_plans.find_plan(plan.load.plan), target, chosen)
