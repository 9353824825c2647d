"""`samples.csv`: one row a request, by block, the arm's place in it, and start."""

import csv
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from keylag.breakdown import parse_label
from keylag.experiment.schedule import Block
from keylag.jtl import Sample
from keylag.phases import CATEGORIES
from keylag.server_timing import COUNTS

MEASURED: Final = ("total", *CATEGORIES, *COUNTS)
"""Columns that the answer's Server-Timing fills: seconds, then counts."""


@dataclass(frozen=True, slots=True)
class Window:
    """When requests count that begin then, in seconds since 1970."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Row:
    """One request of the load; `measured` is empty if Keystone did not say."""

    block: int
    position: int
    arm: str
    start_seconds: float
    method: str
    code: str
    success: bool
    warm_up: bool
    """Sent while the arms warmed up: in the file, but in no figure."""
    latency_seconds: float
    """At the client, until the last byte of the answer."""
    measured: dict[str, float]


OWN: Final = tuple(field.name for field in fields(Row) if field.name != "measured")
COLUMNS: Final = (*OWN, *MEASURED)


def rows_of(
    block: Block, arm: str, samples: Iterable[Sample], window: Window
) -> list[Row]:
    """Return an arm's rows; what came to prepare the load, or after it, is left out."""
    load = [
        _row(block, arm, sample, sample.start_seconds < window.begin)
        for sample in samples
        if not sample.is_setup and sample.start_seconds < window.end
    ]
    return sorted(load, key=lambda row: row.start_seconds)


def _row(block: Block, arm: str, sample: Sample, warm_up: bool) -> Row:  # noqa: FBT001
    return Row(
        block=block.number,
        position=block.arms.index(arm),
        arm=arm,
        start_seconds=sample.start_seconds,
        method=parse_label(sample.label)[0],
        code=sample.code,
        success=sample.success,
        warm_up=warm_up,
        latency_seconds=sample.elapsed_seconds,
        measured=_measured(sample),
    )


def _measured(sample: Sample) -> dict[str, float]:
    timing = sample.timing
    if timing is None:
        return {}
    return {"total": timing.total_seconds, **timing.categories, **timing.counts}


def append(path: Path, rows: Iterable[Row]) -> None:
    """Add rows to the file, with a header if it is new.

    They are on the disk on return, as a power failure would find it.
    """
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
    """Put a folder's list of files on the disk; a new file is not in it before."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _cells(row: Row) -> list[object]:
    own = [getattr(row, name) for name in OWN]
    return [*map(_text, own), *(_text(row.measured.get(name, "")) for name in MEASURED)]


def _text(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    return f"{value:.14g}" if isinstance(value, float) else value


def read(path: Path, size: int = -1) -> Iterator[Row]:
    """Read so many bytes of the file, or all; half a last line is passed over."""
    with path.open("rb") as stream:
        whole, newline, _ = stream.read(size).rpartition(b"\n")
    for cells in csv.DictReader(io.StringIO((whole + newline).decode(), newline="")):
        yield Row(
            block=int(cells["block"]),
            position=int(cells["position"]),
            arm=cells["arm"],
            start_seconds=float(cells["start_seconds"]),
            method=cells["method"],
            code=cells["code"],
            success=cells["success"] == "1",
            warm_up=cells["warm_up"] == "1",
            latency_seconds=float(cells["latency_seconds"]),
            measured={n: float(cells[n]) for n in MEASURED if cells[n]},
        )
