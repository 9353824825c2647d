"""What a run remembers of itself, so that it can be judged and gone on with.

`run.json` is written after each block, once its rows are in `samples.csv`.  It
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
from keylag.experiment import reading, samples
from keylag.experiment.plan import Plan
from keylag.experiment.samples import Row
from keylag.state import write_private

RUNNING: Final = "running"
INTERRUPTED: Final = "interrupted"


class FolderError(KeylagError):
    """A folder holds no run, or one that cannot be gone on with."""


@dataclass
class Journal:
    """The state of one run."""

    seed: int
    environment: dict[str, Any] = field(default_factory=dict)
    minutes: float | None = None
    """The limit of its time, if that is not the plan's."""
    blocks: int = 0
    """Done so far, in the order of the seed."""
    seconds: float = 0.0
    """Spent on them; the first start and interruptions are left out."""
    samples_size: int = 0
    ended: str = RUNNING
    """Why there are no more blocks."""
    events: list[str] = field(default_factory=list)
    """What went wrong, in order."""

    def note(self, block: int, arm: str, texts: Iterable[str]) -> None:
        """Write down what went wrong with an arm in a block."""
        self.events += [f"block {block}, arm {arm}: {text}" for text in texts]


@dataclass(frozen=True)
class Folder:
    """The folder of a run: plan.toml, run.json, samples.csv and the reports."""

    path: Path

    @property
    def samples(self) -> Path:
        """The raw samples."""
        return self.path / "samples.csv"

    def create(self, plan: Path, journal: Journal) -> None:
        """Begin a run; raises FolderError if there is one already."""
        if (self.path / "run.json").exists():
            message = (
                f"{self.path} holds a run. Go on with it by `keylag experiment resume "
                f"{self.path}`, or choose another --out."
            )
            raise FolderError(message)
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "plan.toml").write_bytes(plan.read_bytes())
        samples.append(self.samples, [])
        journal.samples_size = self.samples.stat().st_size
        self.save(journal)

    def plan(self) -> Plan:
        """Return the plan as it was when the run began, bounded as the run is."""
        return reading.read(self.path / "plan.toml").bounded(self.load().minutes)

    def load(self) -> Journal:
        """Return the journal; raises FolderError if there is none."""
        try:
            return Journal(**json.loads((self.path / "run.json").read_text()))
        except (OSError, ValueError, TypeError) as error:
            message = f"{self.path} holds no run of an experiment: {error}"
            raise FolderError(message) from error

    def save(self, journal: Journal) -> None:
        """Write the journal, whole or not at all."""
        write_private(self.path / "run.json", json.dumps(asdict(journal), indent=2))

    def cut(self, journal: Journal) -> None:
        """Remove rows of a block that was never finished.

        Raises FolderError if rows of finished blocks are missing.
        """
        size = self.samples.stat().st_size
        if size < journal.samples_size:
            message = (
                f"{self.samples} has {size} bytes, but had {journal.samples_size} "
                "after the last block: samples are lost. Begin another run."
            )
            raise FolderError(message)
        os.truncate(self.samples, journal.samples_size)

    def add(self, journal: Journal, rows: Iterable[Row]) -> None:
        """Add the rows of a finished block."""
        samples.append(self.samples, rows)
        journal.samples_size = self.samples.stat().st_size
        journal.blocks += 1
        self.save(journal)

    def rows(self, journal: Journal | None = None) -> list[Row]:
        """Return the rows of the finished blocks; another may be under way."""
        size = (journal or self.load()).samples_size
        return list(samples.read(self.samples, size))
