"""Read and write `samples.csv`, which has one row per request."""

import csv
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from keylag.breakdown import parse_label
from keylag.experiment.schedule import Round
from keylag.jtl import Sample
from keylag.phases import CATEGORIES, Cell
from keylag.server_timing import COUNTS

TIMING_COLUMNS: Final = ("total", *CATEGORIES, *COUNTS)
"""Columns from the Server-Timing of the response: seconds, then counts."""
CELLS_COLUMN: Final = "cells"
"""The last column, which files of older releases do not have."""


@dataclass(frozen=True, slots=True)
class MeasurementWindow:
    """Requests that start from `begin` to `end` count; seconds since 1970."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Row:
    """One request of the load; `server_timing` is empty without that header."""

    round: int
    position: int
    """The place of the arm in the round, from 0."""
    arm: str
    start_seconds: float
    method: str
    code: str
    success: bool
    warm_up: bool
    """Whether it was sent during the warm-up; figures leave such requests out."""
    latency_seconds: float
    """At the client, until the last byte of the response."""
    server_timing: dict[str, float]
    cells_text: str = ""
    """The seconds of each cell: `sql.validate=0.0012 orm.roles=0.0003`."""

    @property
    def cells(self) -> dict[Cell, float]:
        """The seconds of each phase and operation; empty if they were not kept."""
        found = {}
        for one in self.cells_text.split():
            name, _, seconds = one.partition("=")
            phase, _, operation = name.partition(".")
            found[phase, operation] = float(seconds)
        return found


ROW_COLUMNS: Final = tuple(
    field.name
    for field in fields(Row)
    if field.name not in {"server_timing", "cells_text"}
)
COLUMNS: Final = (*ROW_COLUMNS, *TIMING_COLUMNS, CELLS_COLUMN)


def rows_of_arm(
    this_round: Round, arm: str, samples: Iterable[Sample], window: MeasurementWindow
) -> list[Row]:
    """Return the rows of an arm by start, without set-up requests and late ones."""
    load = [
        _row(this_round, arm, sample, sample.start_seconds < window.begin)
        for sample in samples
        if not sample.is_setup and sample.start_seconds < window.end
    ]
    return sorted(load, key=lambda row: row.start_seconds)


def _row(this_round: Round, arm: str, sample: Sample, warm_up: bool) -> Row:  # noqa: FBT001
    return Row(
        round=this_round.number,
        position=this_round.arms.index(arm),
        arm=arm,
        start_seconds=sample.start_seconds,
        method=parse_label(sample.label)[0],
        code=sample.code,
        success=sample.success,
        warm_up=warm_up,
        latency_seconds=sample.elapsed_seconds,
        server_timing=_server_timing(sample),
        cells_text=_cells_text(sample),
    )


def _server_timing(sample: Sample) -> dict[str, float]:
    timing = sample.timing
    if timing is None:
        return {}
    return {"total": timing.total_seconds, **timing.categories, **timing.counts}


def _cells_text(sample: Sample) -> str:
    cells = sample.timing.cells if sample.timing else {}
    return " ".join(
        f"{phase}.{operation}={seconds:.6g}"
        for (phase, operation), seconds in cells.items()
    )


def append_rows(path: Path, rows: Iterable[Row]) -> None:
    """Append rows to the file and sync it to the disk; a new file gets a header."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        if new:
            writer.writerow(COLUMNS)
        writer.writerows(map(_cells, rows))
        stream.flush()
        os.fsync(stream.fileno())
    if new:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # The entry of a new file is in its folder, which needs a sync of its own.
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _cells(row: Row) -> list[object]:
    own = [getattr(row, name) for name in ROW_COLUMNS]
    return [
        *map(_text, own),
        *(_text(row.server_timing.get(name, "")) for name in TIMING_COLUMNS),
        row.cells_text,
    ]


def _text(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    return f"{value:.14g}" if isinstance(value, float) else value


def read_rows(path: Path, size: int = -1) -> Iterator[Row]:
    """Yield the rows in `size` bytes, or all; ignores an incomplete last line."""
    with path.open("rb") as stream:
        whole, newline, _ = stream.read(size).rpartition(b"\n")
    for cells in csv.DictReader(io.StringIO((whole + newline).decode(), newline="")):
        yield Row(
            round=int(cells["round"]),
            position=int(cells["position"]),
            arm=cells["arm"],
            start_seconds=float(cells["start_seconds"]),
            method=cells["method"],
            code=cells["code"],
            success=cells["success"] == "1",
            warm_up=cells["warm_up"] == "1",
            latency_seconds=float(cells["latency_seconds"]),
            server_timing={n: float(cells[n]) for n in TIMING_COLUMNS if cells[n]},
            cells_text=cells.get(CELLS_COLUMN) or "",
        )
