"""Reads JMeter's samples, a JTL file in CSV format, as a stream of typed rows.

An interrupted run leaves a partial last line, and a JVM may print messages into the
file.  Such records are skipped and reported.  A missing column is an error.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from keylag.errors import KeylagError
from keylag.server_timing import (
    BadServerTimingError,
    ServerTiming,
    is_keylags,
    parse_server_timing,
)

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
"""Columns that the reader needs; deploy/jmeter/user.properties configures them."""

SETUP_PREFIX: Final = "setup "
"""Prefix of the labels of requests that prepare a load."""

_RECORD_START: Final = re.compile(r"\d{10,},")
_FIRST_CLIENT_ERROR: Final = 400
_EXAMPLES_SHOWN: Final = 3


class JtlError(KeylagError):
    """A JTL file is empty or lacks a column."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One request as JMeter measured it, in seconds."""

    start_seconds: float
    """Start of the request as Unix time."""
    elapsed_seconds: float
    """Time until the last byte of the response, in steps of 1 ms."""
    latency_seconds: float
    """Time until the first byte of the response."""
    connect_seconds: float
    label: str
    code: str
    message: str
    thread: str
    success: bool
    size_bytes: int
    timing: ServerTiming | None
    """The Server-Timing of Keylag; None if it is missing or invalid."""
    arrival_seconds: float | None = None
    """When the request of an open load arrived, as Unix time; None in a closed load."""

    @property
    def is_setup(self) -> bool:
        """Whether the request prepares the load."""
        return self.label.startswith(SETUP_PREFIX)

    @property
    def refused(self) -> bool:
        """Whether the load expected this 4xx response."""
        return (
            self.success
            and self.code.isdigit()
            and int(self.code) >= _FIRST_CLIENT_ERROR
        )


@dataclass(slots=True)
class JtlReader:
    """A JTL file to iterate over; afterwards `skipped` has the invalid records."""

    path: Path
    skipped: list[tuple[int, str]] = field(default_factory=list)
    """(line, reason) of each invalid record."""
    invalid_timings: list[tuple[int, str]] = field(default_factory=list)
    """(line, reason) of each sample with an invalid Server-Timing header."""

    def __iter__(self) -> Iterator[Sample]:
        """Yield all samples; raises JtlError for an empty file or a missing column."""
        self.skipped.clear()
        self.invalid_timings.clear()
        if not self.path.exists() or not self.path.stat().st_size:
            message = (
                f"{self.path} has no samples: the load ended before its first one."
            )
            raise JtlError(message)
        with self.path.open(encoding="utf-8", errors="replace", newline="") as lines:
            header = _read_header(self.path, lines)
            for number, record in _records(lines):
                sample = self._parse_record(number, record, header)
                if sample:
                    yield sample

    def _parse_record(self, line: int, record: str, header: list[str]) -> Sample | None:
        try:
            row = _parse_fields(record, header)
            return _parse_sample(row, self._parse_timing(line, row["server_timing"]))
        except (ValueError, csv.Error) as error:
            self.skipped.append((line, str(error)))
            return None

    def _parse_timing(self, line: int, header: str) -> ServerTiming | None:
        # A proxy or another middleware may send a header of its own.
        if not is_keylags(header):
            return None
        try:
            return parse_server_timing(header)
        except BadServerTimingError as error:
            self.invalid_timings.append((line, str(error)))
            return None

    def warnings(self) -> list[str]:
        """Return a sentence on skipped records and one on invalid headers, if any."""
        return [
            f"{self.path}: {len(found)} {what} "
            + "; ".join(
                f"line {line}: {reason}" for line, reason in found[:_EXAMPLES_SHOWN]
            )
            for found, what in (
                (self.skipped, "invalid records were skipped:"),
                (self.invalid_timings, "samples have an invalid Server-Timing header:"),
            )
            if found
        ]


def read_samples(path: Path) -> tuple[list[Sample], list[str]]:
    """Return the samples of a file, and warnings about invalid records.

    Raises JtlError for an empty file or a missing column.
    """
    jtl = JtlReader(path)
    return list(jtl), jtl.warnings()


def _read_header(path: Path, lines: Iterable[str]) -> list[str]:
    header = next(csv.reader(lines), [])
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        message = (
            f"{path} lacks the columns {', '.join(missing)}. "
            "Run JMeter with `-q deploy/jmeter/user.properties`."
        )
        raise JtlError(message)
    return header


def _records(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield records as (number of the first line, text).

    A quoted field may contain line breaks.  A line that starts with a timestamp ends
    a record with an unclosed quote, so an invalid line costs one record at most.
    """
    number, pending = 0, ""
    for line_number, line in enumerate(lines, start=2):
        if pending and pending.count('"') % 2 and not _RECORD_START.match(line):
            pending += line
            continue
        if pending:
            yield number, pending
        number, pending = line_number, line
    if pending:
        yield number, pending


def _parse_fields(record: str, header: list[str]) -> dict[str, str]:
    if not record.endswith("\n"):
        message = "incomplete last line"
        raise ValueError(message)
    fields = next(csv.reader([record]))
    if len(fields) != len(header):
        message = f"{len(fields)} fields instead of {len(header)}"
        raise ValueError(message)
    return dict(zip(header, fields, strict=True))


def _parse_sample(row: dict[str, str], timing: ServerTiming | None) -> Sample:
    arrival = row.get("arrival_ms")
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
        arrival_seconds=int(arrival) / 1000 if arrival else None,
    )
