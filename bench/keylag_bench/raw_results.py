"""Raw results: one CSV row per arm and round, and call counts per request."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, fields
from math import inf
from pathlib import Path
from typing import get_type_hints


@dataclass(frozen=True)
class TurnResult:
    """The measurement of one turn, as the process of the arm reports it."""

    cpu_seconds: float
    """CPU seconds of all its threads, since the end of its last turn."""
    wall_seconds: float
    """Wall seconds from the first call to the end of the last one."""
    spans: int
    """Spans recorded since the process started."""
    exports: int = 0
    """Periodic exports of metrics in the turn."""
    export_cpu_seconds: float = 0.0
    """CPU seconds of the exports, a part of `cpu_seconds`."""


@dataclass(frozen=True)
class Row:
    """The sum of all turns of an arm in one round; a row of overhead.csv."""

    workload: str
    restart: int
    round: int
    arm: str
    requests: int
    cpu_seconds: float
    wall_seconds: float
    exports: int = 0
    export_cpu_seconds: float = 0.0


@dataclass(frozen=True)
class CallCounts:
    """Spans and cache calls per request of an arm."""

    workload: str
    arm: str
    spans: float
    cache_calls: float


WriteRow = Callable[[Row], None]


@contextmanager
def open_csv(path: Path) -> Iterator[WriteRow]:
    """Open a new CSV file and return a function that appends a row.

    Each row is flushed, so it survives this process.  It is not synced to the disk,
    which would disturb the measurement.
    """
    with path.open("w", newline="", encoding="utf-8", buffering=1) as stream:
        writer = csv.writer(stream)
        writer.writerow(field.name for field in fields(Row))

        def write_row(row: Row) -> None:
            writer.writerow(astuple(row))
            stream.flush()

        yield write_row


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV file; raises ValueError for an invalid file."""
    kinds = get_type_hints(Row)
    with path.open(newline="", encoding="utf-8") as stream:
        text = stream.read()
    lines = list(csv.DictReader(text.splitlines()))
    valid = all(set(line) == set(kinds) and None not in line.values() for line in lines)
    if not (valid and text.endswith("\n")):
        message = f"{path.name} has another format, or is truncated"
        raise ValueError(message)
    rows = [
        Row(**{name: kind(line[name]) for name, kind in kinds.items()})
        for line in lines
    ]
    if not all(map(_is_measured, rows)):
        message = f"{path.name} has a row without positive, finite times"
        raise ValueError(message)
    return rows


def _is_measured(row: Row) -> bool:
    seconds = (row.cpu_seconds, row.wall_seconds)
    return row.requests > 0 and all(0 < value < inf for value in seconds)


def counts_as_dict(call_counts: CallCounts) -> dict[str, float]:
    """Return the counts by name."""
    values = asdict(call_counts)
    return {name: values[name] for name in ("spans", "cache_calls")}
