"""Measure the arms one after another, in random order, several times."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from keylag.errors import KeylagError
from keylag.experiment.capacity.open_load import (
    FIRST_LOAD_SECONDS,
    WARM_UP_SECONDS,
    Trial,
)
from keylag.experiment.capacity.ramp import Ramp
from keylag.experiment.plan import RESTART_SECONDS, SECONDS_PER_MINUTE, Plan
from keylag.experiment.run_folder import INTERRUPTED, RUNNING
from keylag.experiment.schedule import Round, schedule_rounds
from keylag.launcher import StackError
from keylag.load_target import LoadTarget

JMETER_SECONDS: Final = 4.0
"""Time to start and end JMeter, and to issue the tokens of a load."""
TYPICAL_TRIALS: Final = 8
"""Of a ramp, for a forecast."""
ARRIVAL_SEEDS: Final = 2**31
DONE: Final = "every arm was tried"
NOTHING_TO_COMPARE: Final = "the base or every other arm has no trial"
TIME_LIMIT_REACHED: Final = "the time limit is reached"
STOPPED_BY_ERROR: Final = "an error stopped the run"
FAILED_ENDS: Final = (NOTHING_TO_COMPARE, STOPPED_BY_ERROR)


class Executor(Protocol):
    """Starts the arms; see keylag.experiment.run.Executor."""

    def start(self) -> None:
        """Start all arms from their initial data; raises StackError."""

    def begin_round(self, this_round: Round) -> None:
        """Restart the Keystones of all arms; raises StackError."""

    def serving(self, arm: str) -> AbstractContextManager[LoadTarget]:
        """Return the target of an arm, under its conditions; raises StackError."""

    def stop(self) -> None:
        """Stop all arms."""


class Load(Protocol):
    """Sends the load of a plan; see keylag.experiment.capacity.open_load.OpenLoad."""

    def first_rate(self, arm: str, target: LoadTarget, out: Path) -> float:
        """Warm an arm, and return a rate in requests per second; raises KeylagError."""

    def try_rate(
        self, arm: str, target: LoadTarget, rate: float, seed: int, out: Path
    ) -> Trial:
        """Send an open load; raises KeylagError."""


class _TimeLimitError(Exception):
    """No time is left for another trial."""


@dataclass(frozen=True)
class Settings:
    """How capacity is measured."""

    limit_seconds: float = 1.0
    """The 95th percentile of a rate that is held is below it."""
    trial_seconds: float = 20.0
    """Of each trial of a rate, after the warm-up."""
    repeats: int = 4
    """Ramps of each arm."""
    minutes: float = 120.0
    """Time limit, after all arms have started."""

    @property
    def seconds_per_trial(self) -> float:
        """How long a trial takes."""
        return WARM_UP_SECONDS + self.trial_seconds + JMETER_SECONDS

    @property
    def seconds_to_first_trial(self) -> float:
        """How long an arm takes until its first trial has ended."""
        first_load = WARM_UP_SECONDS + FIRST_LOAD_SECONDS + JMETER_SECONDS
        return RESTART_SECONDS + first_load + self.seconds_per_trial

    @property
    def seconds(self) -> float:
        """The time limit in seconds."""
        return self.minutes * SECONDS_PER_MINUTE

    def forecast_minutes(self, arms: int) -> float:
        """Return about how long the measurement of so many arms takes."""
        more_trials = (TYPICAL_TRIALS - 1) * self.seconds_per_trial
        ramp = self.seconds_to_first_trial + more_trials
        return self.repeats * arms * ramp / SECONDS_PER_MINUTE


@dataclass
class ArmRamp:
    """One ramp of one arm."""

    arm: str
    repeat: int
    """Counted from 0."""
    trials: list[Trial] = field(default_factory=list)
    held: float | None = None
    """The highest rate that was held; None if none was."""
    not_held: float | None = None
    """The lowest rate that was not held in two trials; None if there is none."""
    complete: bool = False
    """Whether the two are neighbours, or the ramp met its limits."""


@dataclass
class CapacityRun:
    """A measurement of all arms of a plan; its `ramps` are valid at any time."""

    plan: Plan
    settings: Settings
    seed: int
    executor: Executor
    load: Load
    out: Path
    """For the files of JMeter."""
    on_trial: "Callable[[CapacityRun], None]"
    """Called after each trial."""
    clock: Callable[[], float] = time.monotonic
    ramps: list[ArmRamp] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    """Problems as sentences."""
    ended: str = RUNNING
    """Why the run ended, as a sentence; RUNNING until then."""
    _started: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds since all arms have started."""
        return 0.0 if self._started is None else self.clock() - self._started

    def execute(self) -> None:
        """Run to an end, record its reason, and stop all arms."""
        try:
            self.executor.start()
            self._started = self.clock()
            self.ended = self._run_repeats()
        except KeyboardInterrupt:
            self.ended = INTERRUPTED
        except (KeylagError, OSError) as error:
            self.events.append(str(error))
            self.ended = STOPPED_BY_ERROR
        finally:
            self._stop()

    def _stop(self) -> None:
        try:
            self.executor.stop()
        except StackError as error:
            self.events.append(str(error))

    def _run_repeats(self) -> str:
        end = DONE
        order = schedule_rounds(self.plan.arm_names, self.seed)
        try:
            for this_round in islice(order, self.settings.repeats):
                self.executor.begin_round(this_round)
                for arm in this_round.arms:
                    self._run_ramp(arm, this_round)
        except _TimeLimitError:
            end = TIME_LIMIT_REACHED
        tried = {ramp.arm for ramp in self.ramps if ramp.trials}
        wanted = min(2, len(self.plan.arms))
        comparable = self.plan.base in tried and len(tried) >= wanted
        return end if comparable else NOTHING_TO_COMPARE

    def _run_ramp(self, arm: str, this_round: Round) -> None:
        ramp = ArmRamp(arm, this_round.number)
        self.ramps.append(ramp)
        try:
            with self.executor.serving(arm) as target:
                self._search(ramp, target, this_round.hash_seed % ARRIVAL_SEEDS)
        except KeylagError as error:
            self.events.append(f"repeat {ramp.repeat + 1}, arm {arm}: {error}")

    def _search(self, found: ArmRamp, target: LoadTarget, seed: int) -> None:
        out = self.out / found.arm / f"repeat-{found.repeat + 1}"
        ramp = Ramp(self.load.first_rate(found.arm, target, out / "first-load"))
        while (rate := ramp.next_rate) is not None:
            self._require_time()
            trial_out = out / f"trial-{len(found.trials) + 1}"
            trial = self.load.try_rate(found.arm, target, rate, seed, trial_out)
            found.trials.append(trial)
            ramp.record(held=trial.held)
            found.held, found.not_held = ramp.held, ramp.not_held
            found.complete = ramp.next_rate is None
            self.on_trial(self)

    def _require_time(self) -> None:
        end = self.seconds + self.settings.seconds_per_trial
        if end > self.settings.seconds:
            raise _TimeLimitError
