"""Measures what Keystone's calls take on storage of several qualities.

    python -m keylag_dev.storage_page

Needs root and some 45 minutes of an idle machine.
"""

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import click

from keylag.lab import intervals
from keylag.lab.storage import fio
from keylag.lab.storage.calls import KINDS, Calls, measure
from keylag.lab.storage.fio import Flush, Rate
from keylag.lab.storage.lab import StorageLab
from keylag.lab.storage.options import StorageOptions
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.lab_page import Gaps, measuring, milliseconds, pairs, write_page

PAGE: Final = CHECKOUT / "docs" / "labs" / "storage-results.md"
OWN_DISK: Final = StorageOptions()
QUICK_DEVICE: Final = StorageOptions([0.0])
"""What others are compared with: a device without a delay."""
LIMITED_DISK: Final = StorageOptions(writes_per_second=100)
STORAGES: Final = (
    OWN_DISK,
    *(StorageOptions(flush=flush) for flush in (2, 0)),
    QUICK_DEVICE,
    *(StorageOptions([ms / 1000]) for ms in (1, 5, 20, 50)),
    *(StorageOptions([0.02], flush=flush) for flush in (2, 0)),
    StorageOptions([0.0, 0.005]),
    StorageOptions([0.0, 0.02]),
    LIMITED_DISK,
    StorageOptions(writes_per_second=20),
)
MATRICES: Final = (
    OWN_DISK,
    QUICK_DEVICE,
    StorageOptions([0.001]),
    StorageOptions([0.0, 0.001]),
    LIMITED_DISK,
)
"""Storage on which fio's whole matrix is measured."""
RESTARTS: Final = 3
ORDER: Final = random.Random(1)  # noqa: S311 - an order is no secret
CALL_SECONDS: Final = 20
INTRODUCTION: Final = f"""\
# Keystone's database on slow storage

<!-- Made by `python -m keylag_dev.storage_page`; run it again instead of editing. -->

*device with 5 ms*: each read and each write of the database's files takes 5 ms longer;
*devices*: two of them with the same data. *flush*: innodb_flush_log_at_trx_commit.

## What calls take

One client sends all calls in turn for {CALL_SECONDS} s, after each of {RESTARTS} starts
of the database; the storages take turns in random order. A figure is the mean of the
starts' medians at the client in ms, with an interval at 95 % by Student's t. *4 kB
direct write + fdatasync* is the mean time of both, by fio, in ms: what a commit waits
for with flush 1.
"""
LONGER: Final = f"""
## What the storage adds

The difference from *{QUICK_DEVICE}* in the same round of starts, in ms: the mean of
all rounds, with an interval at 95 % by Student's t. An interval without 0 is a
difference; where nothing differs, one in twenty is without 0 by chance.
"""
MATRIX: Final = """
## What the storage does

fio's random reads and writes past the page cache, per second, by the size of a block
and the number of jobs at the same time.
"""


@dataclass(frozen=True)
class Measured:
    """What was measured on one kind of storage after a start of the database."""

    flushed: Flush
    calls: Mapping[str, Calls]


Round = Mapping[str, Measured]
"""What was measured on each storage after a start, by the storage in words.

Storage that could not be measured is missing.
"""


def render(rounds: Sequence[Round], matrices: Mapping[str, Sequence[Rate]]) -> str:
    """Return the page."""
    calls = (INTRODUCTION, *_call_lines(rounds), LONGER, *_longer_lines(rounds))
    return "\n".join([*calls, MATRIX, *_matrix_lines(matrices), ""])


def _call_lines(rounds: Sequence[Round]) -> Iterator[str]:
    yield f"| storage | 4 kB direct write + fdatasync | {' | '.join(KINDS)} |"
    yield f"|---|---:|{'---:|' * len(KINDS)}"
    for name in map(str, STORAGES):
        starts = [one[name] for one in rounds if name in one]
        if not starts:
            continue
        flushed = fmean(one.flushed.seconds for one in starts)
        medians = ([_median(one, kind) for one in starts] for kind in KINDS)
        calls = (milliseconds(intervals.mean(one)) for one in medians)
        yield f"| {name} | {flushed * 1000:.2f} | {' | '.join(calls)} |"
    found = [
        calls
        for each in rounds
        for one in each.values()
        for calls in one.calls.values()
    ]
    sent, failed = sum(one.count for one in found), sum(one.failed for one in found)
    yield f"\n{sent} calls succeeded, and {failed} failed."


def _longer_lines(rounds: Sequence[Round]) -> Iterator[str]:
    yield f"| storage | {' | '.join(KINDS)} |"
    yield f"|---|{'---:|' * len(KINDS)}"
    quick = str(QUICK_DEVICE)
    for name in map(str, STORAGES):
        both = pairs(rounds, name, quick)
        if both and name != quick:
            cells = (_longer(both, kind) for kind in KINDS)
            yield f"| {name} | {' | '.join(cells)} |"


def _longer(both: Sequence[tuple[Measured, Measured]], kind: str) -> str:
    differences = [_median(one, kind) - _median(quick, kind) for one, quick in both]
    return milliseconds(intervals.mean(differences))


def _median(one: Measured, kind: str) -> float:
    return one.calls[kind].median_seconds.mid


def _matrix_lines(matrices: Mapping[str, Sequence[Rate]]) -> Iterator[str]:
    yield f"| access | block | jobs | {' | '.join(matrices)} |"
    yield f"|---|---|---:|{'---:|' * len(matrices)}"
    for rates in zip(*matrices.values(), strict=True):
        first = rates[0]
        figures = " | ".join(f"{one.per_second:.0f}" for one in rates)
        yield f"| {first.access} | {first.block} | {first.jobs} | {figures} |"


def measure_round(lab: StorageLab, number: int, gaps: Gaps) -> Round:
    """Measure all storages once, in random order."""
    found = {}
    for options in ORDER.sample(STORAGES, len(STORAGES)):
        with gaps.reporting(f"start {number} of {RESTARTS}, {options}"):
            lab.change(options)
            # Otherwise fio would also wait for the end of the move.
            os.sync()
            flushed = fio.flush(lab.device, prefix=lab.in_group())
            calls = measure(lab.stack_folder, CALL_SECONDS)
            found[str(options)] = Measured(flushed, calls)
    return found


def measure_matrices(
    lab: StorageLab, gaps: Gaps
) -> Iterator[tuple[str, Sequence[Rate]]]:
    """Measure fio's whole matrix on some storages; yield it with their names."""
    for options in MATRICES:
        with gaps.reporting(f"fio's matrix, {options}"):
            lab.change(options)
            rates = list(fio.matrix(lab.device, prefix=lab.in_group(), seconds=1))
            yield str(options), rates


@click.command()
def main() -> None:
    """Measure all kinds of storage, and write the page."""
    lab = StorageLab(state_folder() / "labs" / "storage-page")
    gaps = Gaps()
    with measuring(lab) as (_, cost):
        lab.up(OWN_DISK, click.echo)
        cost.note_start()
        starts = range(1, RESTARTS + 1)
        rounds = [measure_round(lab, number, gaps) for number in starts]
        matrices = dict(measure_matrices(lab, gaps))
        write_page(PAGE, render(rounds, matrices) + gaps.sentence(), cost)


if __name__ == "__main__":
    main()
