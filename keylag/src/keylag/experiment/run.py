"""Run rounds until every arm has a verdict or a limit is reached."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from keylag.errors import KeylagError
from keylag.experiment.analysis import Comparison, compare_arms
from keylag.experiment.noise_check import NoiseChecker
from keylag.experiment.plan import MIN_ROUNDS, SECONDS_PER_MINUTE, Plan
from keylag.experiment.run_folder import (
    INTERRUPTED,
    MAX_FAILED_ROUNDS,
    RUNNING,
    RunFolder,
    RunState,
)
from keylag.experiment.samples import Row
from keylag.experiment.schedule import Round, schedule_rounds
from keylag.experiment.verdicts import CANNOT_TELL
from keylag.launcher import StackError

ALL_VERDICTS_REACHED: Final = "every arm has a verdict"
REST_HAS_VERDICTS: Final = "every arm that did not fail has a verdict"
TIME_LIMIT_REACHED: Final = "the time limit is reached"
NOTHING_TO_COMPARE: Final = "the base or every other arm failed"
STOPPED_BY_ERROR: Final = "an error stopped the run"
OUT_OF_REACH: Final = "the asked interval is out of reach"
ROUNDS_DONE: Final = "all rounds are done"
FAILED_ENDS: Final = (STOPPED_BY_ERROR, NOTHING_TO_COMPARE, OUT_OF_REACH)
"""Ends of a run that make a command fail."""


@dataclass(frozen=True)
class ArmResult:
    """The requests of an arm in one round, and problems as sentences for the report."""

    rows: list[Row]
    problems: Sequence[str] = ()


class Executor(Protocol):
    """Starts the arms and sends their load."""

    def start(self) -> None:
        """Start all arms from their initial data; raises StackError."""

    def begin_round(self, this_round: Round) -> None:
        """Prepare the arms of a round: restart their Keystones; raises StackError."""

    def run_round(self, this_round: Round, out: Path) -> Mapping[str, ArmResult]:
        """Send the load of a round and return the result of each of its arms.

        `out` is a folder for JMeter's files.  Problems with an arm are in its result.
        """

    def stop(self) -> None:
        """Stop all arms."""


@dataclass
class ExperimentRun:
    """A run, new or resumed."""

    plan: Plan
    folder: RunFolder
    executor: Executor
    on_round: "Callable[[ExperimentRun], None]"
    """Called after each round."""
    noise_checker: NoiseChecker | None = None
    """What watches the load, and measures the noise in the first rounds."""
    clock: Callable[[], float] = time.monotonic
    state: RunState = field(init=False)
    rows: list[Row] = field(init=False)
    comparisons: list[Comparison] = field(init=False)
    """After the latest round, for the HTTP method that the plan decides by."""

    def __post_init__(self) -> None:
        self.state = self.folder.load_state()
        self.folder.truncate_samples(self.state)
        self.rows = self.folder.load_rows()
        self.comparisons = self._compare()

    def _compare(self) -> list[Comparison]:
        decision = self.plan.decision
        found = compare_arms(
            self.rows, self.plan.base, self.plan.other_arms, decision, self.state.looks
        )
        return [one for one in found if one.method == decision.method]

    def execute(self) -> None:
        """Run to an end, record its reason in the state, and stop all arms."""
        self.state.ended = RUNNING
        try:
            self.executor.start()
            self.state.ended = self._run_rounds()
            if self.state.ended == TIME_LIMIT_REACHED:
                self.state.end_plan()
        except KeyboardInterrupt:
            self.state.ended = INTERRUPTED
        except (KeylagError, OSError) as error:
            self.state.events.append(str(error))
            self.state.ended = STOPPED_BY_ERROR
        finally:
            try:
                self._stop()
            finally:
                self.folder.save_state(self.state)

    def _stop(self) -> None:
        try:
            self.executor.stop()
        except StackError as error:
            self.state.events.append(str(error))

    def _run_rounds(self) -> str:
        started = self.clock() - self.state.seconds
        order = schedule_rounds(self.plan.arm_names, self.state.seed)
        left = islice(order, self.state.rounds, None)
        while not (reason := self._stop_reason()):
            self._run_round(next(left), started)
            if not self._can_compare():
                return NOTHING_TO_COMPARE
        return reason

    def _plan_more_rounds(self, arms_of_round: int) -> None:
        done = (self.state.rounds, self.state.seconds)
        in_time = self.plan.rounds_at_pace(*done, self.pace_seconds)
        if self.state.rounds == MIN_ROUNDS - 1:
            # Before the first look, so it depends on no result.
            self.state.planned_rounds = max(self.state.planned_rounds, in_time)
        elif arms_of_round < self.state.latest_round_arms:
            self.state.plan_more_rounds(in_time)
        self.state.latest_round_arms = arms_of_round

    @property
    def pace_seconds(self) -> float:
        """How long a round to come takes, if there has been one."""
        return self.state.pace_seconds(self.plan.arm_names)

    @property
    def _last_round(self) -> int:
        # The intervals beyond a plan are wider, so only a longer limit goes there.
        return max(self.state.planned_rounds, self.plan.planned_rounds)

    @property
    def active_arms(self) -> list[str]:
        """The arms that take part in the next round."""
        return self.state.active(self.plan.arm_names)

    def _can_compare(self) -> bool:
        names = self.plan.arm_names
        answering = [arm for arm in names if not self.state.has_failed(arm)]
        return answering == names or (
            self.plan.base in answering and len(answering) > 1
        )

    def _run_round(self, this_round: Round, started: float) -> None:
        active = [arm for arm in this_round.arms if arm in self.active_arms]
        this_round = replace(this_round, arms=active)
        self.executor.begin_round(this_round)
        results = self._send_load(this_round)
        rows: list[Row] = []
        for arm in active:
            self.state.add_events(this_round.number, arm, results[arm].problems)
            self._count_failed_round(this_round, arm, results[arm].rows)
            rows += results[arm].rows
        before = self.state.seconds
        self.state.seconds = self.clock() - started
        self.state.latest_round_seconds = self.state.seconds - before
        self.folder.add_round(self.state, rows)
        self.rows += rows
        self._plan_more_rounds(len(active))
        verdicts = self._verdicts
        self.comparisons = self._compare()
        self._release_decided_arms(verdicts)
        if self.noise_checker:
            self.noise_checker.end_round(self.state, self.rows)
        self.folder.save_state(self.state)
        self.on_round(self)

    def _send_load(self, this_round: Round) -> Mapping[str, ArmResult]:
        with self.noise_checker.watch() if self.noise_checker else nullcontext():
            return self.executor.run_round(this_round, self.folder.path / "jmeter")

    def _count_failed_round(
        self, this_round: Round, arm: str, rows: Sequence[Row]
    ) -> None:
        succeeded = any(row.success for row in rows)
        failed = self.state.failed_rounds
        failed[arm] = 0 if succeeded else failed.get(arm, 0) + 1
        if self.state.has_failed(arm):
            text = (
                f"no successful request in {MAX_FAILED_ROUNDS} consecutive rounds; "
                "the arm is skipped from now on"
            )
            self.state.add_events(this_round.number, arm, [text])

    def _stop_reason(self) -> str | None:
        if not self.state.rounds:
            return None
        if self.noise_checker and self.noise_checker.stops_run:
            return OUT_OF_REACH
        if self.plan.design.ends_at_verdict and (reason := self._verdicts_reached()):
            return reason
        if self.state.rounds >= self._last_round:
            return ROUNDS_DONE
        left = self.plan.design.minutes * SECONDS_PER_MINUTE - self.state.seconds
        return TIME_LIMIT_REACHED if left < self.pace_seconds else None

    def _verdicts_reached(self) -> str | None:
        if not self.plan.other_arms:
            return None
        by_arm = {one.arm: one for one in self.comparisons}
        open_arms = [
            arm for arm in self.plan.other_arms if self._is_open(by_arm.get(arm))
        ]
        if not open_arms:
            return ALL_VERDICTS_REACHED
        return None if {*open_arms} & {*self.active_arms} else REST_HAS_VERDICTS

    def _release_decided_arms(self, before: Mapping[str, str]) -> None:
        """Leave the time of the arms that have their verdict to the others.

        An arm has it when two looks in a row agree: the first verdicts of few rounds
        are wrong more often, as `bench/simulate.py` shows.
        """
        if not self.plan.design.ends_at_verdict or self._verdicts_reached():
            return
        verdicts = self._verdicts
        self.state.decided_arms += [
            arm
            for arm in self.active_arms
            if verdicts.get(arm, CANNOT_TELL) != CANNOT_TELL
            and verdicts[arm] == before.get(arm)
        ]

    @property
    def _verdicts(self) -> dict[str, str]:
        """The verdicts of the latest look, by arm with figures."""
        measure = self.plan.decision.measure
        return {
            one.arm: one.measures[measure].verdict
            for one in self.comparisons
            if measure in one.measures
        }

    def _is_open(self, found: Comparison | None) -> bool:
        """Return whether an arm lacks a verdict; one that never answered has one."""
        if found is None:
            return True
        if not found.rounds and found.arm not in self.active_arms:
            return False
        difference = found.measures.get(self.plan.decision.measure)
        return difference is None or difference.verdict == CANNOT_TELL
