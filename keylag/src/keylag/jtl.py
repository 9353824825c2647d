"""JMeter's samples: a JTL in CSV, read as a stream of typed rows.

A run that was stopped leaves half a last line, and a JVM may write into the
file what is no sample.  Such lines are passed over, counted and reported; a
file that lacks a needed column is refused.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from keylag.errors import KeylagError
from keylag.server_timing import BadServerTimingError, ServerTiming, parse

COLUMNS: Final = (
    "timeStamp",
    "elapsed",
    "label",
    "responseCode",
    "responseMessage",
    "threadName",
    "success",
    "bytes",
    "Latency",
    "Connect",
    "server_timing",
)
"""What `deploy/jmeter/user.properties` makes JMeter write and the reader needs."""

SETUP: Final = "setup "
"""A label that begins so belongs to the preparation of a load, not to the load."""

_START: Final = re.compile(r"\d{10,},")
_FIRST_REFUSAL: Final = 400
_SHOWN: Final = 3


class JtlError(KeylagError):
    """The file cannot be read as samples; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One request as JMeter saw it; times in seconds."""

    start_seconds: float
    """Since 1970, when the request began."""
    elapsed_seconds: float
    """Until the last byte of the answer; JMeter resolves a millisecond."""
    latency_seconds: float
    """Until the first byte of the answer."""
    connect_seconds: float
    label: str
    code: str
    message: str
    thread: str
    success: bool
    size_bytes: int
    timing: ServerTiming | None
    """Keystone's own measurement; None if the answer did not carry one."""

    @property
    def is_setup(self) -> bool:
        """Whether the request belongs to the preparation of the load."""
        return self.label.startswith(SETUP)

    @property
    def refused(self) -> bool:
        """Whether a refusal (4xx) was the right answer to this request."""
        return self.success and self.code.isdigit() and int(self.code) >= _FIRST_REFUSAL


@dataclass(slots=True)
class Jtl:
    """A JTL to iterate over; after that, `skipped` says what was passed over."""

    path: Path
    skipped: list[tuple[int, str]] = field(default_factory=list)
    """(line, reason) of each record that is no sample."""
    unreadable_timings: list[tuple[int, str]] = field(default_factory=list)
    """(line, reason) of each sample whose Server-Timing could not be read."""

    def __iter__(self) -> Iterator[Sample]:
        """Read from the start; raises JtlError without samples or a needed column."""
        self.skipped.clear()
        self.unreadable_timings.clear()
        if not self.path.exists() or not self.path.stat().st_size:
            message = f"{self.path}: no samples; the load ended before its first one."
            raise JtlError(message)
        with self.path.open(encoding="utf-8", errors="replace", newline="") as lines:
            header = _header(self.path, lines)
            for number, record in _records(lines):
                sample = self._sample(number, record, header)
                if sample:
                    yield sample

    def _sample(self, line: int, record: str, header: list[str]) -> Sample | None:
        try:
            row = _row(record, header)
            return _typed(row, self._timing(line, row["server_timing"]))
        except (ValueError, csv.Error) as error:
            self.skipped.append((line, str(error)))
            return None

    def _timing(self, line: int, header: str) -> ServerTiming | None:
        if not header:
            return None
        try:
            return parse(header)
        except BadServerTimingError as error:
            self.unreadable_timings.append((line, str(error)))
            return None

    def report(self) -> list[str]:
        """Say in a sentence each what was passed over; nothing if nothing was."""
        return [
            f"{self.path}: {len(found)} {what} "
            + "; ".join(f"line {line}: {reason}" for line, reason in found[:_SHOWN])
            for found, what in (
                (self.skipped, "records are no samples and were passed over:"),
                (self.unreadable_timings, "samples have an unreadable Server-Timing:"),
            )
            if found
        ]


def read(path: Path) -> tuple[list[Sample], list[str]]:
    """Read all samples of a file, and the report of what was passed over."""
    jtl = Jtl(path)
    return list(jtl), jtl.report()


def _header(path: Path, lines: Iterable[str]) -> list[str]:
    header = next(csv.reader(lines), [])
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        message = (
            f"{path} lacks the columns {', '.join(missing)}. "
            "Let JMeter write it with `-q deploy/jmeter/user.properties`."
        )
        raise JtlError(message)
    return header


def _records(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Join lines to records, which begin with a time stamp; (first line, text).

    A quoted field may go over several lines.  A new time stamp ends a record
    whose quote was never closed, so that noise costs one record at most.
    """
    number, held = 0, ""
    for line_number, line in enumerate(lines, start=2):
        if held and held.count('"') % 2 and not _START.match(line):
            held += line
            continue
        if held:
            yield number, held
        number, held = line_number, line
    if held:
        yield number, held


def _row(record: str, header: list[str]) -> dict[str, str]:
    if not record.endswith("\n"):
        message = "cut off at the end"
        raise ValueError(message)
    fields = next(csv.reader([record]))
    if len(fields) != len(header):
        message = f"{len(fields)} fields instead of {len(header)}"
        raise ValueError(message)
    return dict(zip(header, fields, strict=True))


def _typed(row: dict[str, str], timing: ServerTiming | None) -> Sample:
    """Raise ValueError for a number that is none."""
    return Sample(
        start_seconds=int(row["timeStamp"]) / 1000,
        elapsed_seconds=int(row["elapsed"]) / 1000,
        latency_seconds=int(row["Latency"]) / 1000,
        connect_seconds=int(row["Connect"]) / 1000,
        label=row["label"],
        code=row["responseCode"],
        message=row["responseMessage"],
        thread=row["threadName"],
        success=row["success"] == "true",
        size_bytes=int(row["bytes"]),
        timing=timing,
    )
