"""What a run remembers of itself, so that it can be judged and gone on with.

`run.json` is written after each round, once its rows are in `samples.csv`.  It
holds how long that file was then: what a killed run wrote after it is cut off before
the run goes on.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from keylag.errors import KeylagError
from keylag.experiment import plan_parser, samples
from keylag.experiment.plan import Plan
from keylag.experiment.samples import Row
from keylag.state import write_private

RUNNING: Final = "running"
INTERRUPTED: Final = "interrupted"


class RunFolderError(KeylagError):
    """A folder holds no run, or one that cannot be gone on with."""


@dataclass
class RunState:
    """The state of one run."""

    seed: int
    environment: dict[str, Any] = field(default_factory=dict)
    minutes: float | None = None
    """The limit of its time, if that is not the plan's."""
    rounds: int = 0
    """Done so far, in the order of the seed."""
    seconds: float = 0.0
    """Spent on them; the first start and interruptions are left out."""
    samples_size: int = 0
    ended: str = RUNNING
    """Why there are no more rounds."""
    events: list[str] = field(default_factory=list)
    """What went wrong, in order."""

    def add_events(self, round_number: int, arm: str, texts: Iterable[str]) -> None:
        """Write down what went wrong with an arm in a round."""
        self.events += [f"round {round_number}, arm {arm}: {text}" for text in texts]


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run: plan.toml, run.json, samples.csv and the reports."""

    path: Path

    @property
    def samples_path(self) -> Path:
        """The raw samples."""
        return self.path / "samples.csv"

    def create(self, plan: Path, state: RunState) -> None:
        """Begin a run; raises FolderError if there is one already."""
        if (self.path / "run.json").exists():
            message = (
                f"{self.path} holds a run. Go on with it by `keylag experiment resume "
                f"{self.path}`, or choose another --out."
            )
            raise RunFolderError(message)
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "plan.toml").write_bytes(plan.read_bytes())
        samples.append_rows(self.samples_path, [])
        state.samples_size = self.samples_path.stat().st_size
        self.save_state(state)

    def load_plan(self) -> Plan:
        """Return the plan as it was when the run began, bounded as the run is."""
        return plan_parser.read_plan(self.path / "plan.toml").with_minutes(
            self.load_state().minutes
        )

    def load_state(self) -> RunState:
        """Return the journal; raises FolderError if there is none."""
        try:
            return RunState(**json.loads((self.path / "run.json").read_text()))
        except (OSError, ValueError, TypeError) as error:
            message = f"{self.path} holds no run of an experiment: {error}"
            raise RunFolderError(message) from error

    def save_state(self, state: RunState) -> None:
        """Write the journal, whole or not at all."""
        write_private(self.path / "run.json", json.dumps(asdict(state), indent=2))

    def truncate_samples(self, state: RunState) -> None:
        """Remove rows of a round that was never finished.

        Raises FolderError if rows of finished rounds are missing.
        """
        size = self.samples_path.stat().st_size
        if size < state.samples_size:
            message = (
                f"{self.samples_path} has {size} bytes, but had {state.samples_size} "
                "after the last round: samples are lost. Begin another run."
            )
            raise RunFolderError(message)
        os.truncate(self.samples_path, state.samples_size)

    def add_round(self, state: RunState, rows: Iterable[Row]) -> None:
        """Add the rows of a finished round."""
        samples.append_rows(self.samples_path, rows)
        state.samples_size = self.samples_path.stat().st_size
        state.rounds += 1
        self.save_state(state)

    def load_rows(self, state: RunState | None = None) -> list[Row]:
        """Return the rows of the finished rounds; another may be under way."""
        size = (state or self.load_state()).samples_size
        return list(samples.read_rows(self.samples_path, size))
