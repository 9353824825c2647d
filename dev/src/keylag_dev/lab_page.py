"""What the pages of laboratories share: a folder, errors, the end, and what it took."""

import math
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeVar

import click
import psutil
import pymysql

from keylag import processes
from keylag.errors import KeylagError
from keylag.experiment.interval import Interval
from keylag_dev.machine_watch import MachineWatch

GIB = 1024**3
ERRORS: Final = (KeylagError, pymysql.MySQLError, OSError)
"""What starting and measuring a laboratory raise."""
Measured = TypeVar("Measured")


class Laboratory(Protocol):
    """A laboratory of a folder."""

    @property
    def folder(self) -> Path:
        """Its folder."""

    def down(self) -> list[str]:
        """Stop everything, and return the names of what was stopped."""


@dataclass
class LabCost:
    """The cost of a laboratory, from the making of this object on."""

    folder: Path
    begun: float = field(default_factory=time.monotonic)
    start_seconds: float = 0.0
    used_bytes: int = 0
    machine: MachineWatch = field(default_factory=MachineWatch)

    def note_start(self) -> None:
        """Note that the laboratory is up for the first time."""
        if not self.start_seconds:
            self.start_seconds = time.monotonic() - self.begun
            self.used_bytes = used_bytes(self.folder)

    def sentence(self) -> str:
        """Return the cost, and how steady the machine was, as a paragraph of a page."""
        minutes = (time.monotonic() - self.begun) / 60
        return (
            f"The first start took {self.start_seconds:.0f} s on {os.cpu_count()} "
            f"processors, and all of this page {minutes:.0f} minutes. After the first "
            f"start, the servers had {self.used_bytes / GIB:.1f} GiB of memory.\n"
            f"{self.machine.sentence()}"
        )


@dataclass(frozen=True)
class Gaps:
    """What a page lacks, because it could not be measured."""

    names: list[str] = field(default_factory=list)

    @contextmanager
    def noting(self, name: str) -> Iterator[None]:
        """Print an error of the body and note its name, so that the page goes on."""
        try:
            yield
        except ERRORS as error:
            click.echo(f"{name}: {error}")
            self.names.append(name)

    @contextmanager
    def reporting(self, name: str) -> Iterator[None]:
        """Note errors as `noting` does; without one, print that it was measured."""
        with self.noting(name):
            yield
            click.echo(f"{name}: measured")

    def sentence(self) -> str:
        """Return the names as a paragraph of a page; empty without gaps."""
        names = "; ".join(self.names)
        return f"\nNot measured, because of errors: {names}.\n" if names else ""


def used_bytes(folder: Path) -> int:
    """Return the memory of all processes below a folder; shared pages count once."""
    found = processes.find_processes(below=folder.resolve())
    total = 0
    for one in found:
        with suppress(psutil.Error):
            total += one.process.memory_full_info().pss
    return total


@contextmanager
def measuring(lab: Laboratory) -> Iterator[tuple[Path, LabCost]]:
    """Yield a scratch folder and the cost of a laboratory; stop the laboratory then."""
    with tempfile.TemporaryDirectory() as out:
        cost = LabCost(lab.folder)
        try:
            with cost.machine.watch():
                yield Path(out), cost
        finally:
            lab.down()


def write_page(page: Path, text: str, cost: LabCost) -> None:
    """Write a page that ends with what the laboratory took; raises OSError."""
    page.write_text(f"{text}\n{cost.sentence()}", encoding="utf-8")


def pairs(
    rounds: Iterable[Mapping[str, Measured]], name: str, base: str
) -> list[tuple[Measured, Measured]]:
    """Return what rounds measured of a name and of the base, where both are there."""
    return [(one[name], one[base]) for one in rounds if {name, base} <= one.keys()]


def milliseconds(seconds: Interval) -> str:
    """Return an estimate and its interval, in ms."""
    return with_interval(seconds.scaled(1000), 0)


def with_interval(found: Interval, decimals: int, unit: str = "") -> str:
    """Return an estimate with its interval, which few values do not have.

    No values have no estimate: `-`.
    """
    if math.isnan(found.mid):
        return "-"
    low, mid, high = (
        f"{one:.{decimals}f}" for one in (found.low, found.mid, found.high)
    )
    return f"{mid}{unit}" + (f" [{low}, {high}]" if found.is_bounded else "")
