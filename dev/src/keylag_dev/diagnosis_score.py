"""Plants faults in a stack under load and scores what `keylag diagnose` says.

    python -m keylag_dev.diagnosis_score [CASE ...]

`make test-diagnosis` runs it.  For each case the faults are planted, a load runs, and
the diagnosis of a minute is compared with the faults.  Beside its score are those of
three baselines: the largest category of time, `keystone-manage doctor`, and chance.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
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
from keylag.faults.model import SERVICE, FaultError, FaultUsageError
from keylag.faults.planting import planted
from keylag.faults.registry import FAULTS
from keylag.phases import CATEGORY_NAMES, category_of
from keylag.processes import find_processes
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools

WARM_SECONDS: Final = 30
"""Load before the window, with the faults in place."""
WINDOW_SECONDS: Final = 60.0
LEADING: Final = 3
"""A cause among so many is found, if not first."""
DOCTOR_SECONDS: Final = 60
HEALTHY_CLIENTS: Final = (1, 2, 4)
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


PAIRS: Final = (
    ("C4", "H3"),
    ("C2", "H1"),
    ("C8", "D1"),
    ("D3", "W2"),
    ("R1", "D1"),
    ("D2", "H3"),
    ("C4", "D4"),
    ("A2", "H1"),
)
"""Faults that are planted together."""
DECOYS: Final[Mapping[str, float]] = {
    "C4": 0.1,
    "D1": 0.1,
    "C8": 0.02,
    "H2": 0.05,
    "H3": 0.02,
    "R1": 3,
    "R3": 0.02,
    "A2": 30,
    "T1": 5,
}
"""Faults whose strength costs a call next to nothing: they look like a cause."""
DOCTOR: Final[Mapping[str, str]] = {
    "[cache] enabled` is not enabled": "C1",
    "not completely configured": "C1",
    "Memcached isn't set up properly": "C2",
    "key repository": "T1",
}
"""What `keystone-manage doctor` says, and the cause that it means."""


@dataclass(frozen=True)
class Planted:
    """One case: a name, the faults in it with their strengths, and the right answer."""

    name: str
    faults: Mapping[str, float | None]
    expected: tuple[str, ...]
    clients: int = 2


@dataclass(frozen=True)
class Score:
    """What was said of one case."""

    case: str
    expected: tuple[str, ...]
    named: tuple[str, ...]
    """Ids of findings, the first one first."""
    category: str
    """The widest category."""
    doctor: tuple[str, ...]
    """Ids of causes that `keystone-manage doctor` names."""
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


def observe(stack: Stack, case: Planted, window: float) -> Score:
    """Wait for a window, and return what the diagnosis of it says."""
    time.sleep(WARM_SECONDS)
    start = time.time()
    time.sleep(window)
    begun = time.monotonic()
    facts = read_facts(Prometheus(stack.url("prometheus")), Window(start, time.time()))
    diagnosis = diagnose(Case(facts, Expected.shipped(facts)))
    seconds = time.monotonic() - begun
    return Score(
        case=case.name,
        expected=case.expected,
        named=tuple(one.rule.id for one in diagnosis.findings),
        category=widest_category(facts.served),
        doctor=doctor_says(stack),
        seconds=seconds,
        document=_document(diagnosis, facts),
    )


def doctor_says(stack: Stack) -> tuple[str, ...]:
    """Return the causes that `keystone-manage doctor` names, as Keystone runs now."""
    (server, *_) = find_processes(stack=stack.folder, service="keystone")
    told = subprocess.run(
        [stack.tools.keystone / "bin" / "keystone-manage", "doctor"],
        env=server.process.environ(),
        capture_output=True,
        text=True,
        timeout=DOCTOR_SECONDS,
        check=False,
    )
    text = told.stdout + told.stderr
    return tuple(dict.fromkeys(id_ for words, id_ in DOCTOR.items() if words in text))


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


def single_faults() -> Iterator[Planted]:
    """Yield a case for each fault, as strong as it is by default."""
    for fault in FAULTS.values():
        yield Planted(fault.key, {fault.key: None}, (fault.id,), max(fault.clients, 2))


def pairs() -> Iterator[Planted]:
    """Yield the cases of two faults at the same time."""
    for keys in PAIRS:
        yield Planted("+".join(keys), dict.fromkeys(keys), keys)


def decoys() -> Iterator[Planted]:
    """Yield the cases of faults that are too weak to matter."""
    for key, strength in DECOYS.items():
        yield Planted(f"decoy {key}", {key: strength}, ())


def healthy(rounds: int) -> Iterator[Planted]:
    """Yield the cases without a fault."""
    for round_ in range(1, rounds + 1):
        for clients in HEALTHY_CLIENTS:
            yield Planted(f"healthy {round_}, {clients} clients", {}, (), clients)


@contextmanager
def under_faults(stack: Stack, case: Planted, folder: Path) -> Iterator[None]:
    """Plant the faults of a case, and send a load, while the body runs."""
    faults = [FAULTS[key] for key in case.faults]
    service = any(SERVICE in fault.slows for fault in faults)
    with ExitStack() as planted_faults:
        for fault, strength in zip(faults, case.faults.values(), strict=True):
            planted_faults.enter_context(planted(stack, fault, strength))
        with load(stack, case.clients, service=service, folder=folder):
            yield


def table(scores: Sequence[Score]) -> Table:
    """Return the scores of all cases."""
    made = Table(
        "case", "named", "first", "leading", "widest category", "doctor", "seconds"
    )
    for one in scores:
        made.add_row(
            one.case,
            " ".join(one.named) or "-",
            "yes" if one.is_first else "NO",
            "yes" if one.is_leading else "NO",
            one.category,
            " ".join(one.doctor) or "-",
            f"{one.seconds:.1f}",
        )
    return made


def summary(scores: Sequence[Score]) -> list[str]:
    """Return the shares of right answers, beside those of the baselines."""
    single = [one for one in scores if len(one.expected) == 1]
    both = [one for one in scores if len(one.expected) > 1]
    calm = [one for one in scores if not one.expected]
    lines = []
    if single:
        n = len(single)
        first = sum(one.is_first for one in single)
        leading = sum(one.is_leading for one in single)
        category = sum(one.category_is_right for one in single)
        doctor = sum(one.expected[0] in one.doctor for one in single)
        lines += [
            f"right cause first: {first} of {n}",
            f"among the first {LEADING}: {leading} of {n}",
            f"the widest category leads to it: {category} of {n}",
            f"keystone-manage doctor names it: {doctor} of {n}",
            f"chance: {n / len(RULES):.1f} of {n}",
        ]
    if both:
        leading = sum(one.is_leading for one in both)
        lines.append(
            f"both of a pair among the first {LEADING}: {leading} of {len(both)}"
        )
    for title, found in (
        ("healthy stacks", [one for one in calm if one.case.startswith("healthy")]),
        ("decoys", [one for one in calm if one.case.startswith("decoy")]),
    ):
        if found:
            alarms = sum(not one.is_first for one in found)
            lines.append(f"false alarms on {title}: {alarms} of {len(found)}")
    if scores:
        slowest = max(one.seconds for one in scores)
        lines.append(f"time to answer: at most {slowest:.1f} s")
    return lines


@click.command()
@click.argument("cases", nargs=-1)
@click.option("--healthy", "rounds", default=1, help="Rounds of healthy stacks.")
@click.option("--window", default=WINDOW_SECONDS, help="Seconds that are diagnosed.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/diagnosis"))
def main(cases: tuple[str, ...], rounds: int, window: float, out: Path) -> None:
    """Score the diagnosis of planted faults.

    CASES are kinds (healthy, faults, pairs, decoys), or single ones such as C4, C4+H3
    and "decoy C4"; all by default.
    """
    console = Console()
    kinds = {
        "healthy": healthy(rounds),
        "faults": single_faults(),
        "pairs": pairs(),
        "decoys": decoys(),
    }
    chosen = [
        case
        for kind, found in kinds.items()
        for case in found
        if not cases or kind in cases or case.name in cases
    ]
    folder = out / time.strftime("%Y-%m-%dT%H-%M-%S")
    folder.mkdir(parents=True)
    scores: list[Score] = []
    with (
        tempfile.TemporaryDirectory() as state,
        Stack(
            Path(state) / "stack", Tools.load(), OPTIONS, initial_data=SAMPLE_CLOUD
        ) as stack,
    ):
        for number, case in enumerate(chosen):
            try:
                with under_faults(stack, case, folder / f"load-{number}"):
                    found = observe(stack, case, window)
            except (FaultError, FaultUsageError) as error:
                console.print(f"{case.name} was left out: {error}")
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
