"""Measures what Keystone's calls take on storage of several qualities.

    python -m keylag_dev.storage_page

Needs root and some 30 minutes of an idle machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from keylag.faults import planting
from keylag.lab.load import KEYLAG, LabLoad
from keylag.lab.named_causes import named_causes
from keylag.lab.storage import fio
from keylag.lab.storage.calls import KINDS, Calls, measure
from keylag.lab.storage.fio import Flush, Rate
from keylag.lab.storage.lab import StorageLab
from keylag.lab.storage.options import StorageOptions
from keylag.paths import CHECKOUT
from keylag.stack import Stack
from keylag.state import state_folder
from keylag.tools import Tools
from keylag_dev.lab_page import measuring, milliseconds, write_page

PAGE: Final = CHECKOUT / "docs" / "labs" / "storage-results.md"
OWN_DISK: Final = StorageOptions()
STORAGES: Final = (
    OWN_DISK,
    StorageOptions(flush=2),
    *(StorageOptions([ms / 1000]) for ms in (0, 1, 5, 20, 50)),
    StorageOptions([0.02], flush=2),
    StorageOptions([0.0, 0.005]),
    StorageOptions([0.0, 0.02]),
    StorageOptions(writes_per_second=100),
    StorageOptions(writes_per_second=20),
)
MATRICES: Final = (
    OWN_DISK,
    StorageOptions([0.0]),
    StorageOptions([0.001]),
    StorageOptions([0.0, 0.001]),
)
"""Storage on which fio's whole matrix is measured."""
CALL_SECONDS: Final = 20
LOAD: Final = LabLoad("token-mixed", seconds=40, clients=2)
STORAGE_DELAYS_SECONDS: Final = (0.03, 0.06, 0.1)
FAULTS: Final[Mapping[str, Sequence[float]]] = {
    "D2:cpu": (60, 75, 90),
    "D4": (100, 200, 400),
    "D1": (2, 5, 20),
}
"""Keys of faults, with their strengths."""
CELLS: Final = {"D2:cpu": "a slow CPU", "D4": "locks", "D1": "distance"}
INTRODUCTION: Final = f"""\
# Keystone's database on slow storage

<!-- Made by `python -m keylag_dev.storage_page`; run it again instead of editing. -->

*device with 5 ms*: each read and each write of the database's files takes 5 ms longer;
*devices*: two of them with the same data. *flush*: innodb_flush_log_at_trx_commit.

## What calls take

Median at the client in ms, with an interval at 95 %. One client sends all calls in
turn for {CALL_SECONDS} s. *A commit* is the mean time of a write of 4 kB with
fdatasync, by fio, in ms: what a commit waits for with flush 1.
"""
MATRIX: Final = """
## What the storage does

fio's random reads and writes past the page cache, per second, by the size of a block
and the number of jobs at the same time.
"""
DIAGNOSIS: Final = f"""
## What the diagnosis names

Each cause was planted at three strengths, under {LOAD.seconds} s of token calls of
{LOAD.clients} clients. *Named* is the first finding of `keylag diagnose`.

| cause | strength | named | right |
|---|---|---|---|
"""


@dataclass(frozen=True)
class Measured:
    """What was measured on one kind of storage."""

    options: StorageOptions
    flushed: Flush
    calls: Mapping[str, Calls]


@dataclass(frozen=True)
class Cell:
    """A cause at a strength, and the first finding."""

    cause: str
    strength: str
    expected: str
    """Words of the finding, or its id."""
    named: str
    """Id and cause of the first finding; empty without one."""

    @property
    def is_right(self) -> bool:
        """Whether the finding is what was expected."""
        return self.expected in self.named


def render(
    measured: Sequence[Measured],
    matrices: Mapping[str, Sequence[Rate]],
    cells: Sequence[Cell],
) -> str:
    """Return the page."""
    right = sum(one.is_right for one in cells)
    diagnosis = [
        f"| {one.cause} | {one.strength} | {one.named or '-'} "
        f"| {'yes' if one.is_right else '**no**'} |"
        for one in cells
    ]
    lines = [INTRODUCTION, *_call_lines(measured), MATRIX, *_matrix_lines(matrices)]
    end = f"\n{right} of {len(cells)} are right.\n"
    return "\n".join(lines) + f"\n{DIAGNOSIS}" + "\n".join([*diagnosis, end])


def _call_lines(measured: Sequence[Measured]) -> Iterator[str]:
    yield f"| storage | a commit | {' | '.join(KINDS)} |"
    yield f"|---|---:|{'---:|' * len(KINDS)}"
    for one in measured:
        calls = [milliseconds(one.calls[kind].median_seconds) for kind in KINDS]
        commit = f"{one.flushed.seconds * 1000:.2f}"
        yield f"| {one.options} | {commit} | {' | '.join(calls)} |"
    failed = sum(one.failed for each in measured for one in each.calls.values())
    yield f"\nCalls that failed: {failed}."


def _matrix_lines(matrices: Mapping[str, Sequence[Rate]]) -> Iterator[str]:
    yield f"| access | block | jobs | {' | '.join(matrices)} |"
    yield f"|---|---|---:|{'---:|' * len(matrices)}"
    for rates in zip(*matrices.values(), strict=True):
        first = rates[0]
        figures = " | ".join(f"{one.per_second:.0f}" for one in rates)
        yield f"| {first.access} | {first.block} | {first.jobs} | {figures} |"


def diagnose_cells(lab: StorageLab, out: Path) -> Iterator[Cell]:
    """Plant causes one after the other, and yield what is named."""
    for number, delay in enumerate(STORAGE_DELAYS_SECONDS):
        options = StorageOptions([delay])
        lab.change(options)
        named = _first_finding(lab, out / f"storage-{number}")
        yield Cell("slow storage", str(options), "its storage", named)
    lab.change(OWN_DISK)
    for key, strengths in FAULTS.items():
        fault = planting.find_fault(key)
        expected = "its CPU" if fault.id == "D2" else f"{fault.id}:"
        for strength in strengths:
            stack = Stack(lab.stack_folder, Tools.load())
            with planting.planted(stack, fault, strength):
                named = _first_finding(lab, out / f"{fault.id}-{strength}")
            text = f"{strength} {fault.strength.unit}"
            yield Cell(CELLS[key], text, expected, named)


def _first_finding(lab: StorageLab, out: Path) -> str:
    LOAD.send([KEYLAG], out, [f"--state={lab.stack_folder}"])
    found = named_causes(lab.stack_folder, LOAD.seconds, [KEYLAG])
    return f"{found[0]['id']}: {found[0]['cause']}" if found else ""


@click.command()
def main() -> None:
    """Measure all kinds of storage, plant all causes, and write the page."""
    lab = StorageLab(state_folder() / "labs" / "storage-page")
    measured: list[Measured] = []
    matrices: dict[str, list[Rate]] = {}
    with measuring(lab) as (out, cost):
        lab.up(OWN_DISK, click.echo)
        cost.note_start()
        for options in STORAGES:
            lab.change(options)
            flushed = fio.flush(lab.device, prefix=lab.in_group())
            calls = measure(lab.stack_folder, CALL_SECONDS)
            measured.append(Measured(options, flushed, calls))
            click.echo(f"{options}: measured")
        for options in MATRICES:
            lab.change(options)
            matrices[str(options)] = list(fio.matrix(lab.device, seconds=1))
            click.echo(f"{options}: measured by fio")
        cells = []
        for cell in diagnose_cells(lab, out):
            cells.append(cell)
            click.echo(f"{cell.cause}, {cell.strength}: {cell.named or 'nothing'}")
        write_page(PAGE, render(measured, matrices, cells), cost)


if __name__ == "__main__":
    main()
