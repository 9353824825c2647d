"""The folder of a run: its plan, its state and its samples.

After each round, the rows are appended to `samples.csv`, and then the state is written
to `run.json`.  The state has the size of `samples.csv`: whatever a killed run appended
after that is truncated when the run resumes.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from keylag.errors import KeylagError
from keylag.experiment import plan_parser, samples
from keylag.experiment.analysis import ALPHA
from keylag.experiment.plan import MIN_ROUNDS, Plan
from keylag.experiment.planned_looks import PlannedLooks
from keylag.experiment.samples import Row
from keylag.state import write_private

MAX_FAILED_ROUNDS: Final = 3
"""Consecutive rounds without a successful request after which an arm is skipped."""
RUNNING: Final = "running"
INTERRUPTED: Final = "interrupted"


class RunFolderError(KeylagError):
    """A folder has no run, or one that cannot be created, resumed or compared."""


@dataclass
class RunState:
    """The state of a run, as in run.json."""

    seed: int
    environment: dict[str, Any] = field(default_factory=dict)
    planned_rounds: int = MIN_ROUNDS
    """As many as fit into the first time limit; the intervals are made for them.

    Until the first rounds have shown how long they take, by an estimate.  More fit when
    arms have left the run.
    """
    plan_changes: list[tuple[int, int]] = field(default_factory=list)
    """The rounds done until each such change, and those planned before it."""
    minutes: float | None = None
    """The time limit, if it differs from the plan's."""
    arms: list[str] | None = None
    """The arms of the plan that the run has; None for all."""
    rounds: int = 0
    """Finished rounds, in the order that the seed gives."""
    seconds: float = 0.0
    """Duration of these rounds, without the first start and interruptions."""
    latest_round_seconds: float = 0.0
    """Duration of the last one of these rounds."""
    latest_round_arms: int = 0
    """How many arms took part in it."""
    samples_size: int = 0
    """Bytes of samples.csv after the last finished round."""
    ended: str = RUNNING
    """Why the run ended, as a sentence; RUNNING until then."""
    noise_check: dict[str, Any] | None = None
    """What the first rounds said about the noise, a NoiseCheck; None until then."""
    disturbances: list[dict[str, Any]] = field(default_factory=list)
    """What happened to the machine under the load of each round, a Disturbance."""
    failed_rounds: dict[str, int] = field(default_factory=dict)
    """The latest rounds in a row in which an arm had no successful request."""
    decided_arms: list[str] = field(default_factory=list)
    """The arms that have their verdict, and take no more turns."""
    events: list[str] = field(default_factory=list)
    """Problems as sentences, in order."""
    snapshot_url: str = ""
    """Of the dashboard of the run, in Grafana; empty without a snapshot."""

    def has_failed(self, arm: str) -> bool:
        """Return whether an arm is skipped, because it did not answer."""
        return self.failed_rounds.get(arm, 0) >= MAX_FAILED_ROUNDS

    def active(self, arms: Sequence[str]) -> list[str]:
        """Return those of the arms that take part in the next round."""
        decided = self.decided_arms
        return [arm for arm in arms if not (arm in decided or self.has_failed(arm))]

    def pace_seconds(self, arms: Sequence[str]) -> float:
        """Return how long a round to come takes, if there has been one."""
        # Rounds of all arms say nothing of those with fewer.
        if self.active(arms) != list(arms) and self.latest_round_seconds:
            return self.latest_round_seconds
        return self.seconds / self.rounds

    @property
    def looks(self) -> PlannedLooks:
        """The looks of the run, each at one comparison."""
        changes = tuple((done, planned) for done, planned in self.plan_changes)
        return PlannedLooks(self.planned_rounds, ALPHA, changes)

    def plan_more_rounds(self, planned: int) -> None:
        """Plan more rounds from now on; what the looks have spent stays spent."""
        looks = self.looks.with_more(planned, self.rounds)
        self.planned_rounds, self.plan_changes = looks.rounds, list(looks.changes)

    def end_plan(self) -> None:
        """End the plan here, so that the last look may spend what it has left.

        For a run whose rounds take longer than planned, which says nothing about the
        arms.
        """
        done = max(MIN_ROUNDS, self.rounds)
        while self.plan_changes and self.plan_changes[-1][0] >= done:
            _, self.planned_rounds = self.plan_changes.pop()
        self.planned_rounds = min(self.planned_rounds, done)

    def add_events(self, round_number: int, arm: str, texts: Iterable[str]) -> None:
        """Record the problems of an arm in a round."""
        self.events += [f"round {round_number}, arm {arm}: {text}" for text in texts]


@dataclass(frozen=True)
class RunFolder:
    """A folder with plan.toml, run.json, samples.csv and the reports."""

    path: Path

    @property
    def samples_path(self) -> Path:
        """The path of samples.csv."""
        return self.path / "samples.csv"

    def create(self, plan: Path, state: RunState) -> None:
        """Create the files of a run; raises RunFolderError if there is one already."""
        if (self.path / "run.json").exists():
            message = (
                f"{self.path} already holds a run. Continue it with `keylag experiment "
                f"resume {self.path}`, or choose another --out."
            )
            raise RunFolderError(message)
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "plan.toml").write_bytes(plan.read_bytes())
        samples.append_rows(self.samples_path, [])
        first_plan = _read_plan(plan, state)
        state.planned_rounds = first_plan.planned_rounds
        state.samples_size = self.samples_path.stat().st_size
        self.save_state(state)

    def load_plan(self) -> Plan:
        """Return the plan of the run, with its time limit, without left out arms."""
        return _read_plan(self.path / "plan.toml", self.load_state())

    def load_state(self) -> RunState:
        """Return the state; raises RunFolderError if run.json is missing or invalid."""
        try:
            return RunState(**json.loads((self.path / "run.json").read_text()))
        except (OSError, ValueError, TypeError) as error:
            message = f"{self.path} holds no run of an experiment: {error}"
            raise RunFolderError(message) from error

    def save_state(self, state: RunState) -> None:
        """Write run.json atomically."""
        write_private(self.path / "run.json", json.dumps(asdict(state), indent=2))

    def truncate_samples(self, state: RunState) -> None:
        """Remove the rows of an unfinished round.

        Raises RunFolderError if rows of finished rounds are missing.
        """
        size = self.samples_path.stat().st_size
        if size < state.samples_size:
            message = (
                f"{self.samples_path} has {size} bytes, but had {state.samples_size} "
                "after the last round: samples are missing. Start a new run."
            )
            raise RunFolderError(message)
        os.truncate(self.samples_path, state.samples_size)

    def add_round(self, state: RunState, rows: Iterable[Row]) -> None:
        """Append the rows of a finished round and write the state."""
        samples.append_rows(self.samples_path, rows)
        state.samples_size = self.samples_path.stat().st_size
        state.rounds += 1
        self.save_state(state)

    def load_rows(self, state: RunState | None = None) -> list[Row]:
        """Return the rows of the finished rounds, also while the run goes on."""
        size = (state or self.load_state()).samples_size
        return list(samples.read_rows(self.samples_path, size))


def _read_plan(path: Path, state: RunState) -> Plan:
    plan = plan_parser.read_plan(path).with_minutes(state.minutes)
    return plan if state.arms is None else plan.with_arms(state.arms)
