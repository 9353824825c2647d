"""Progress of a running load, counted in the JTL file that JMeter writes."""

import csv
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from keylag.jtl import SETUP_PREFIX


@dataclass(frozen=True, slots=True)
class Progress:
    """Requests done so far, their errors, and the total; None for unlimited loads."""

    done: int
    errors: int
    expected: int | None


@dataclass
class JtlProgress:
    """Counts the samples of a growing JTL file, without set-up requests."""

    path: Path
    expected: int | None
    done: int = 0
    errors: int = 0
    first_failure: str = ""
    """Label, code and message of the first failed request; includes set-up."""
    _offset: int = 0
    _columns: list[str] = field(default_factory=list)

    def poll(self) -> Progress:
        """Count the samples that were written since the last call."""
        with suppress(FileNotFoundError), self.path.open("rb") as stream:
            stream.seek(self._offset)
            complete, newline, _ = stream.read().rpartition(b"\n")
            self._offset += len(complete + newline)
            for line in complete.splitlines():
                self._count_line(line.decode(errors="replace"))
        return Progress(self.done, self.errors, self.expected)

    def _count_line(self, line: str) -> None:
        fields = next(csv.reader([line]), [])
        if not self._columns:
            self._columns = fields
            return
        row = dict(zip(self._columns, fields, strict=False))
        if "success" not in row:
            return
        failed = row["success"] != "true"
        if failed and not self.first_failure:
            parts = (row[name] for name in ("label", "responseCode", "responseMessage"))
            self.first_failure = " ".join(parts)
        if not row["label"].startswith(SETUP_PREFIX):
            self.done += 1
            self.errors += failed
