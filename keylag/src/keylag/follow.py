"""Follows a JTL while JMeter writes it."""

import csv
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from keylag.jtl import SETUP


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; `expected` is None for a load without a limit."""

    done: int
    errors: int
    expected: int | None


@dataclass
class Follower:
    """Counts the samples of a growing file; set-up requests do not count."""

    path: Path
    expected: int | None
    done: int = 0
    errors: int = 0
    failure: str = ""
    """What the first failed request was answered, set-up or not."""
    _offset: int = 0
    _columns: list[str] = field(default_factory=list)

    def look(self) -> Progress:
        """Count what was written since the last look."""
        with suppress(FileNotFoundError), self.path.open("rb") as stream:
            stream.seek(self._offset)
            whole, newline, _ = stream.read().rpartition(b"\n")
            self._offset += len(whole + newline)
            for line in whole.splitlines():
                self._count(line.decode(errors="replace"))
        return Progress(self.done, self.errors, self.expected)

    def _count(self, line: str) -> None:
        fields = next(csv.reader([line]), [])
        if not self._columns:
            self._columns = fields
            return
        row = dict(zip(self._columns, fields, strict=False))
        if "success" not in row:
            return
        failed = row["success"] != "true"
        if failed and not self.failure:
            words = (row[name] for name in ("label", "responseCode", "responseMessage"))
            self.failure = " ".join(words)
        if not row["label"].startswith(SETUP):
            self.done += 1
            self.errors += failed
