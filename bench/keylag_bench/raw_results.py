"""The raw result: one row a round, and how much each call makes others do."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, fields
from math import inf
from pathlib import Path
from typing import get_type_hints


@dataclass(frozen=True)
class TurnResult:
    """What one process says of one round."""

    cpu_seconds: float
    """Of all its threads, since the end of its round before."""
    wall_seconds: float
    """From before the first call until after the last."""
    spans: int
    """Recorded since the process started."""
    exports: int = 0
    """Periodic exports of metrics in it."""
    export_cpu_seconds: float = 0.0
    """Of the threads that exported; contained in `cpu_seconds`."""


@dataclass(frozen=True)
class Row:
    """One round of one arm."""

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
    """What one request of one arm makes, as a mean over some."""

    workload: str
    arm: str
    spans: float
    cache_calls: float


WriteRow = Callable[[Row], None]


@contextmanager
def open_csv(path: Path) -> Iterator[WriteRow]:
    """Give a function that adds a row to a CSV file; each outlives this process.

    It is not synced to the disk: that would disturb the measurement.
    """
    with path.open("w", newline="", encoding="utf-8", buffering=1) as stream:
        writer = csv.writer(stream)
        writer.writerow(field.name for field in fields(Row))

        def write_row(row: Row) -> None:
            writer.writerow(astuple(row))
            stream.flush()

        yield write_row


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV file; raises ValueError if it is cut off, or none."""
    kinds = get_type_hints(Row)
    with path.open(newline="", encoding="utf-8") as stream:
        text = stream.read()
    lines = list(csv.DictReader(text.splitlines()))
    whole = all(set(line) == set(kinds) and None not in line.values() for line in lines)
    if not (whole and text.endswith("\n")):
        message = f"{path.name} is not as a benchmark writes it, or cut off"
        raise ValueError(message)
    rows = [
        Row(**{name: kind(line[name]) for name, kind in kinds.items()})
        for line in lines
    ]
    if not all(map(_is_measured, rows)):
        message = f"{path.name} has a row whose requests took no time, or no number"
        raise ValueError(message)
    return rows


def _is_measured(row: Row) -> bool:
    """Tell whether a row can be a measurement: requests that took some time."""
    seconds = (row.cpu_seconds, row.wall_seconds)
    return row.requests > 0 and all(0 < value < inf for value in seconds)


def counts_as_dict(call_counts: CallCounts) -> dict[str, float]:
    """Return the counts alone."""
    known = asdict(call_counts)
    return {name: known[name] for name in ("spans", "cache_calls")}
