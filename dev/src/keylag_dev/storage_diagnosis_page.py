"""Plants what makes a database slow, and writes a page of what the diagnosis names.

    python -m keylag_dev.storage_diagnosis_page

Needs root and some 15 minutes of an idle machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from keylag.diagnosis.rule import MATTERS
from keylag.faults import planting
from keylag.lab.load import KEYLAG, LabLoad
from keylag.lab.named_causes import named_causes
from keylag.lab.storage.lab import StorageLab
from keylag.lab.storage.options import StorageOptions
from keylag.paths import CHECKOUT
from keylag.stack import Stack
from keylag.state import state_folder
from keylag.tools import Tools
from keylag_dev.lab_page import Gaps, measuring, write_page

PAGE: Final = CHECKOUT / "docs" / "labs" / "storage-diagnosis.md"
OWN_DISK: Final = StorageOptions()
LOAD: Final = LabLoad("token-mixed", seconds=40, clients=2)
STORAGE_DELAYS_SECONDS: Final = (0.03, 0.06, 0.1)
FAULTS: Final[Mapping[str, Sequence[float]]] = {
    "D2:cpu": (80, 90, 95),
    "D4": (100, 200, 400),
    "D1": (2, 5, 20),
}
"""Keys of faults, with their strengths."""
CAUSES: Final = {"D2:cpu": "a slow CPU", "D4": "locks", "D1": "distance"}
INTRODUCTION: Final = f"""\
# What the diagnosis names on slow storage

<!-- Made by `python -m keylag_dev.storage_diagnosis_page`; run it again instead of
editing. -->

Each cause was planted at three strengths, under {LOAD.seconds} s of token calls of
{LOAD.clients} clients; without one, nothing should be named. *Named* is the first
finding of `keylag diagnose`. The strengths begin where a cause costs more than a
finding must, {MATTERS:.0%} of a call; weaker ones are not named.

| cause | strength | named | right |
|---|---|---|---|
"""


@dataclass(frozen=True)
class Trial:
    """A cause at a strength, and the first finding."""

    cause: str
    strength: str
    expected: str
    """Words of the finding, or its id; empty if nothing should be named."""
    named: str
    """Id and cause of the first finding; empty without one."""

    @property
    def is_right(self) -> bool:
        """Whether the finding is what was expected."""
        return self.expected in self.named if self.expected else not self.named


def render(trials: Sequence[Trial]) -> str:
    """Return the page."""
    right = sum(one.is_right for one in trials)
    lines = [
        f"| {one.cause} | {one.strength} | {one.named or '-'} "
        f"| {'yes' if one.is_right else '**no**'} |"
        for one in trials
    ]
    summary = f"\n{right} of {len(trials)} are right.\n"
    return INTRODUCTION + "\n".join([*lines, summary])


def try_causes(lab: StorageLab, out: Path, gaps: Gaps) -> Iterator[Trial]:
    """Plant no cause, then one after the other; yield what is named."""
    with gaps.noting("nothing planted"):
        yield Trial("nothing", str(OWN_DISK), "", _first_finding(lab, out / "none"))
    for number, delay in enumerate(STORAGE_DELAYS_SECONDS):
        options = StorageOptions([delay])
        with gaps.noting(str(options)):
            lab.change(options)
            named = _first_finding(lab, out / f"storage-{number}")
            yield Trial("slow storage", str(options), "its storage", named)
    with gaps.noting("the causes on the own disk"):
        lab.change(OWN_DISK)
        yield from _plant_faults(lab, out, gaps)


def _plant_faults(lab: StorageLab, out: Path, gaps: Gaps) -> Iterator[Trial]:
    for key, strengths in FAULTS.items():
        fault = planting.find_fault(key)
        expected = "its CPU" if fault.id == "D2" else f"{fault.id}:"
        for strength in strengths:
            text = f"{strength} {fault.strength.unit}"
            with gaps.noting(f"{CAUSES[key]}, {text}"):
                stack = Stack(lab.stack_folder, Tools.load())
                with planting.planted(stack, fault, strength):
                    named = _first_finding(lab, out / f"{fault.id}-{strength}")
                yield Trial(CAUSES[key], text, expected, named)


def _first_finding(lab: StorageLab, out: Path) -> str:
    LOAD.send([KEYLAG], out, [f"--state={lab.stack_folder}"])
    found = named_causes(lab.stack_folder, LOAD.seconds, [KEYLAG])
    return f"{found[0]['id']}: {found[0]['cause']}" if found else ""


@click.command()
def main() -> None:
    """Plant each cause, and write the page."""
    lab = StorageLab(state_folder() / "labs" / "storage-diagnosis-page")
    gaps = Gaps()
    with measuring(lab) as (out, cost):
        lab.up(OWN_DISK, click.echo)
        cost.note_start()
        trials = []
        for trial in try_causes(lab, out, gaps):
            trials.append(trial)
            named = trial.named or "nothing"
            click.echo(f"{trial.cause}, {trial.strength}: {named}")
        write_page(PAGE, render(trials) + gaps.sentence(), cost)


if __name__ == "__main__":
    main()
