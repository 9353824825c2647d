"""Measures where the time of a read goes, and writes a page of its layers.

    python -m keylag_dev.storage_layers_page

Needs root and two minutes of an idle machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import click

from keylag.lab.storage import layers
from keylag.lab.storage.lab import StorageLab
from keylag.lab.storage.layers import Layer
from keylag.lab.storage.options import StorageOptions
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.lab_page import Gaps, measuring, write_page

PAGE: Final = CHECKOUT / "docs" / "labs" / "storage-layers.md"
STORAGES: Final = tuple(StorageOptions([ms / 1000]) for ms in (0, 1, 5))
INTRODUCTION: Final = f"""\
# Where the time of a read from slow storage goes

<!-- Made by `python -m keylag_dev.storage_layers_page`; run it again instead of
editing. -->

`keylag lab storage layers` reads 4 kB at a time for {layers.SECONDS} s from each layer:
the file on the device, the loop device below it, the file that nbdkit serves by FUSE,
and the file that nbdkit reads. *Whole* is the mean time of such a read, with all layers
below; *self* is without them. *Delay* is the one that was set, and not measured.

Only reads are measured: a write to a lower layer would destroy the file system on it.
"""


def render(found: Mapping[str, Sequence[Layer]]) -> str:
    """Return the page of the layers of each storage."""
    return "\n".join([INTRODUCTION, *_lines(found), ""])


def _lines(found: Mapping[str, Sequence[Layer]]) -> Iterator[str]:
    yield "| storage | layer | whole, ms | self, ms | share of the read |"
    yield "|---|---|---:|---:|---:|"
    for storage, stack in found.items():
        for one in stack:
            share = one.self_seconds / stack[0].seconds
            whole, itself = one.seconds * 1000, one.self_seconds * 1000
            cells = (storage, one.name, f"{whole:.3f}", f"{itself:.3f}", f"{share:.0%}")
            yield f"| {' | '.join(cells)} |"
    for storage, stack in found.items():
        yield f"\nFolded stacks of *{storage}*, in microseconds, for a flame graph:\n"
        yield f"```text\n{layers.folded(stack)}```"


@click.command()
def main() -> None:
    """Measure the layers of each storage, and write the page."""
    lab = StorageLab(state_folder() / "labs" / "storage-layers-page")
    gaps = Gaps()
    found = {}
    with measuring(lab) as (_, cost):
        lab.up(STORAGES[0], click.echo)
        cost.note_start()
        for options in STORAGES:
            with gaps.reporting(str(options)):
                lab.change(options)
                found[str(options)] = layers.measure(lab)
        write_page(PAGE, render(found) + gaps.sentence(), cost)


if __name__ == "__main__":
    main()
