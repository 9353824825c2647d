"""Try a rate: requests arrive at random, whatever the responses take.

The latency of a request counts from its arrival, so the time that it waits for a
virtual user counts too.  Without that, slow responses would delay the requests behind
them, and hide their own effect (coordinated omission).
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from keylag import jmeter, jtl, load_plans
from keylag.experiment.analysis import MAX_FAILED_SHARE
from keylag.experiment.plan import Plan
from keylag.jmeter_process import JMeterError
from keylag.jmeter_progress import Progress
from keylag.load_runner import build_load, jmeter_home
from keylag.load_target import LoadTarget

WARM_UP_SECONDS: Final = 5.0
"""Of each load; its requests do not count."""
FIRST_LOAD_SECONDS: Final = 10.0
"""Of the load that fills the caches of a new Keystone."""
MIN_THREADS: Final = 10
MAX_THREADS: Final = 10_000
"""Of a load plan."""
ABANDONED_LOAD_SECONDS: Final = 600
"""After this time an orphaned JMeter ends by itself; the longest trial is shorter."""
SLOW_SHARE: Final = 0.05
"""Of the requests, which may take longer than the limit."""
ARRIVAL_SIGMAS: Final = 3.0
"""Standard deviations by which chance may raise the number of arrivals."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of the requests of one open load after its warm-up."""

    rate: float
    """Requests per second that arrived."""
    requests: int
    failed: int
    p95_seconds: float
    """From arrival to response; infinite if more than 5 % failed, or the load ended
    early."""
    held: bool
    problem: str = ""
    """Why the load ended early."""


@dataclass(frozen=True)
class OpenLoad:
    """Sends the load of a plan at chosen rates."""

    plan: Plan
    seconds: float
    """Of a trial, after the warm-up."""
    limit_seconds: float
    """A rate is held if 95 % of its requests take less."""

    def first_rate(self, arm: str, target: LoadTarget, out: Path) -> float:
        """Warm an arm with the plan's own load, and return its requests per second.

        Raises JMeterError and JtlError, also if no request succeeded.
        """
        seconds = WARM_UP_SECONDS + FIRST_LOAD_SECONDS
        ends = {"loops": "-1", "duration_seconds": f"{seconds:.0f}"}
        samples = self._send(arm, target, ends, out, OverloadDetector())
        begin = min(one.start_seconds for one in samples) + WARM_UP_SECONDS
        warm = [one for one in samples if one.success and one.start_seconds >= begin]
        if not warm:
            message = f"no request succeeded; see {out / 'samples.jtl'}"
            raise JMeterError(message)
        return len(warm) / FIRST_LOAD_SECONDS

    def try_rate(
        self, arm: str, target: LoadTarget, rate: float, seed: int, out: Path
    ) -> Trial:
        """Send an open load; raises JMeterError and JtlError.

        A problem of JMeter says nothing about the arm.
        """
        number = math.ceil(rate * (WARM_UP_SECONDS + self.seconds))
        threads = max(MIN_THREADS, math.ceil(rate * self.limit_seconds))
        overload = OverloadDetector(rate, self.seconds, self.limit_seconds)
        properties = {
            "arrivals": str(number),
            "arrivals_seed": str(seed),
            "rate_per_second": f"{rate:.4f}",
            "loops": "-1",
            "threads": str(min(threads, MAX_THREADS)),
            "duration_seconds": str(ABANDONED_LOAD_SECONDS),
        }
        samples = self._send(arm, target, properties, out, overload)
        return judge(rate, samples, self.limit_seconds, overload.reason)

    def _send(
        self,
        arm: str,
        target: LoadTarget,
        properties: Mapping[str, str],
        out: Path,
        overload: "OverloadDetector",
    ) -> list[jtl.Sample]:
        chosen = {**self.plan.load_properties(arm), **properties}
        load = build_load(load_plans.find_plan(self.plan.load.plan), target, chosen)
        result = jmeter.run(
            load, home=jmeter_home(), out=out, should_stop=overload.is_hopeless
        )
        if result.interrupted and not overload.reason:
            raise KeyboardInterrupt
        samples, _ = jtl.read_samples(result.samples)
        return [one for one in samples if not one.is_setup]


def judge(
    rate: float, samples: Sequence[jtl.Sample], limit_seconds: float, problem: str = ""
) -> Trial:
    """Judge the samples of an open load; with a `problem` the rate is not held."""
    arrivals = [one.arrival_seconds or one.start_seconds for one in samples]
    begin = min(arrivals, default=0.0) + WARM_UP_SECONDS
    latencies = sorted(
        one.start_seconds + one.elapsed_seconds - arrival if one.success else math.inf
        for one, arrival in zip(samples, arrivals, strict=True)
        if arrival >= begin
    )
    requests, failed = len(latencies), sum(map(math.isinf, latencies))
    p95 = math.inf
    if latencies and not problem:
        p95 = latencies[math.ceil((1 - SLOW_SHARE) * requests) - 1]
    held = p95 < limit_seconds and failed <= MAX_FAILED_SHARE * requests
    return Trial(rate, requests, failed, p95, held, problem)


@dataclass
class OverloadDetector:
    """Ends an open load early, once the arm cannot hold its rate any more."""

    rate: float = 0.0
    seconds: float = 0.0
    """In which requests arrive after the warm-up; 0 for a load that is not open."""
    limit_seconds: float = 0.0
    clock: Callable[[], float] = time.monotonic
    reason: str = ""
    _started: float | None = None
    _warm_up: Progress = field(default=Progress(0, 0, None))
    """Until its end; those of its requests that end later count as measured."""

    def is_hopeless(self, progress: Progress) -> bool:
        """Return whether too many requests have failed, or wait for too long."""
        if self._started is None and progress.done:
            self._started = self.clock()
        if self._started is None or not self.seconds:
            return False
        seconds = self.clock() - self._started - WARM_UP_SECONDS
        if seconds < 0:
            self._warm_up = progress
            return False
        due_seconds = min(max(0.0, seconds - self.limit_seconds), self.seconds)
        late = self.rate * due_seconds
        done = progress.done - self._warm_up.done
        errors = progress.errors - self._warm_up.errors
        waiting = max(0.0, self.rate * WARM_UP_SECONDS - self._warm_up.done)
        allowed = SLOW_SHARE * self.rate * self.seconds
        if errors - waiting > allowed:
            self.reason = "too many requests failed"
        elif late - done > allowed + ARRIVAL_SIGMAS * math.sqrt(late):
            self.reason = "too many requests waited"
        return bool(self.reason)
