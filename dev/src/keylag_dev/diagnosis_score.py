"""Plants each fault in a stack under load and scores what `keylag diagnose` says.

    python -m keylag_dev.diagnosis_score [FAULT ...]

`make test-diagnosis` runs it.  For each case a load runs, the fault is planted, and
the diagnosis of a minute is compared with the fault.  Beside its score are those of
two baselines: the largest category of time, and chance.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from keylag.demo import SAMPLE_CLOUD
from keylag.diagnosis.case import Case
from keylag.diagnosis.document import as_json
from keylag.diagnosis.expected import Expected
from keylag.diagnosis.facts import Calls, Facts, Window
from keylag.diagnosis.prometheus import Prometheus
from keylag.diagnosis.ranking import Diagnosis, diagnose
from keylag.diagnosis.reading import read_facts
from keylag.diagnosis.registry import RULES
from keylag.faults.model import SERVICE, Fault, FaultUsageError
from keylag.faults.planting import planted
from keylag.faults.registry import FAULTS
from keylag.phases import CATEGORY_NAMES, category_of
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools

WARM_SECONDS: Final = 30
"""Load before the window, with the fault in place."""
WINDOW_SECONDS: Final = 60
LEADING: Final = 3
"""A cause among so many is found, if not first."""
HEALTHY: Final = "healthy"
HEALTHY_THREADS: Final = (1, 2, 4)
"""Clients of a healthy stack."""
OPTIONS: Final = StackOptions(cache="memcache_pool", extras=("service",))
SUSPECT: Final = {
    "sql": "C1",
    "cache": "C4",
    "revocation": "R1",
    "password_hash": "H1",
    "token_crypto": "T1",
    "orm": "C1",
    "other": "A2",
}
"""What an operator suspects who sees only the widest category."""


@dataclass(frozen=True)
class Score:
    """What was said of one case."""

    case: str
    expected: tuple[str, ...]
    named: tuple[str, ...]
    """Ids of findings, the first one first."""
    category: str
    """The widest category."""
    seconds: float
    """Time to answer."""
    document: dict[str, Any]

    @property
    def is_first(self) -> bool:
        """Return whether the first finding is right; of a healthy stack, none."""
        if not self.expected:
            return not self.named
        return self.named[:1] == self.expected[:1]

    @property
    def is_leading(self) -> bool:
        """Return whether all causes are among the first ones."""
        return set(self.expected) <= set(self.named[:LEADING])

    @property
    def category_is_right(self) -> bool:
        """Return whether the widest category leads to the cause."""
        return self.expected[:1] == (SUSPECT[self.category],)


@contextmanager
def load(stack: Stack, threads: int, *, service: bool, folder: Path) -> Iterator[None]:
    """Send token calls from clients, and calls of the service, while the body runs."""
    plans = ["token-mixed", *(["service-call"] if service else [])]
    senders = [
        subprocess.Popen(
            [
                *(Path(sys.executable).with_name("keylag"), "load", plan),
                *(f"--state={stack.folder}", f"--set=threads={threads}"),
                *("--set=loops=-1", "--set=ramp_seconds=0", "--max-errors=100%"),
                f"--out={folder / plan}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for plan in plans
    ]
    try:
        yield
    finally:
        for sender in senders:
            sender.terminate()
        for sender in senders:
            sender.wait()


def observe(stack: Stack, name: str, expected: Sequence[str]) -> Score:
    """Wait for a window, and return what the diagnosis of it says."""
    time.sleep(WARM_SECONDS)
    start = time.time()
    time.sleep(WINDOW_SECONDS)
    begun = time.monotonic()
    facts = read_facts(Prometheus(stack.url("prometheus")), Window(start, time.time()))
    diagnosis = diagnose(Case(facts, Expected.shipped(facts)))
    return Score(
        case=name,
        expected=tuple(expected),
        named=tuple(one.rule.id for one in diagnosis.findings),
        category=widest_category(facts.served),
        seconds=time.monotonic() - begun,
        document=_document(diagnosis, facts),
    )


def _document(diagnosis: Diagnosis, facts: Facts) -> dict[str, Any]:
    """Return the diagnosis, with what each call spent."""
    cells = [
        {
            "kind": one.kind,
            "refused": one.refused,
            "statements": one.statements,
            "round_trips": one.round_trips,
            "cells": {f"{p}.{o}": seconds for (p, o), seconds in one.cells.items()},
        }
        for one in facts.calls
    ]
    return {**as_json(diagnosis), "spent": cells}


def widest_category(calls: Sequence[Calls]) -> str:
    """Return the category with most time, as the sentence of a run names it."""
    spent = dict.fromkeys(CATEGORY_NAMES, 0.0)
    for one in calls:
        for cell, seconds in one.cells.items():
            spent[category_of(cell)] += one.per_second * seconds
    return max(spent, key=lambda name: spent[name])


def score_fault(stack: Stack, fault: Fault, folder: Path) -> Score:
    """Plant a fault, and score the diagnosis."""
    service = SERVICE in fault.slows
    with (
        planted(stack, fault),
        load(stack, max(fault.clients, 2), service=service, folder=folder),
    ):
        return observe(stack, fault.key, [fault.id])


def table(scores: Sequence[Score]) -> Table:
    """Return the scores of all cases."""
    made = Table("case", "named", "first", "leading", "widest category", "seconds")
    for one in scores:
        made.add_row(
            one.case,
            " ".join(one.named) or "-",
            "yes" if one.is_first else "NO",
            "yes" if one.is_leading else "NO",
            one.category,
            f"{one.seconds:.1f}",
        )
    return made


def summary(scores: Sequence[Score]) -> list[str]:
    """Return the shares of right answers, beside those of the baselines."""
    faults = [one for one in scores if one.expected]
    healthy = [one for one in scores if not one.expected]
    lines = []
    if faults:
        first = sum(one.is_first for one in faults)
        leading = sum(one.is_leading for one in faults)
        category = sum(one.category_is_right for one in faults)
        n = len(faults)
        lines += [
            f"right cause first: {first} of {n}",
            f"among the first {LEADING}: {leading} of {n}",
            f"widest category leads to it: {category} of {n}",
            f"chance: {n / len(RULES):.1f} of {n}",
        ]
    if healthy:
        alarms = sum(not one.is_first for one in healthy)
        lines.append(f"false alarms on healthy stacks: {alarms} of {len(healthy)}")
    return lines


@click.command()
@click.argument("faults", nargs=-1)
@click.option("--healthy", default=1, help="Rounds of healthy stacks.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/diagnosis"))
def main(faults: tuple[str, ...], healthy: int, out: Path) -> None:
    """Score the diagnosis of planted faults."""
    console = Console()
    chosen = [FAULTS[key] for key in faults] or list(FAULTS.values())
    folder = out / time.strftime("%Y-%m-%dT%H-%M-%S")
    folder.mkdir(parents=True)
    scores: list[Score] = []
    with (
        tempfile.TemporaryDirectory() as state,
        Stack(
            Path(state) / "stack", Tools.load(), OPTIONS, initial_data=SAMPLE_CLOUD
        ) as stack,
    ):
        for round_ in range(healthy):
            for threads in HEALTHY_THREADS:
                name = f"{HEALTHY}, {threads} clients"
                loads = folder / f"healthy-{round_}-{threads}"
                with load(stack, threads, service=False, folder=loads):
                    scores.append(_keep(observe(stack, name, []), folder, console))
        for fault in chosen:
            loads = folder / fault.key.replace(":", "-")
            try:
                found = score_fault(stack, fault, loads)
            except FaultUsageError as error:
                console.print(f"{fault.key} was left out: {error}")
                continue
            scores.append(_keep(found, folder, console))
    console.print(table(scores))
    for line in summary(scores):
        console.print(line)


def _keep(score: Score, folder: Path, console: Console) -> Score:
    """Print a score and append it to the results, so that nothing is lost."""
    named = " ".join(score.named) or "nothing"
    console.print(f"{score.case}: {named}", highlight=False)
    with (folder / "scores.jsonl").open("a", encoding="utf-8") as results:
        results.write(json.dumps(asdict(score)) + "\n")
    return score


if __name__ == "__main__":
    main()
