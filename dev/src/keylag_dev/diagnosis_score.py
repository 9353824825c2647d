"""Plants faults in a stack under load and scores what `keylag diagnose` says.

    python -m keylag_dev.diagnosis_score [CASE ...]

`make test-diagnosis` runs it.  For each case the faults are planted, a load runs, and
the diagnosis of a minute is compared with the faults.  Beside its score are those of
three baselines: the largest category of time, `keystone-manage doctor`, and chance.
"""

import io
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from keylag.command_errors import handle_errors
from keylag.diagnosis.case import Case
from keylag.diagnosis.document import as_json
from keylag.diagnosis.expected import Expected
from keylag.diagnosis.facts import Calls, Facts, Window
from keylag.diagnosis.prometheus import Prometheus
from keylag.diagnosis.ranking import Diagnosis, diagnose
from keylag.diagnosis.reading import read_facts
from keylag.diagnosis.terminal import render
from keylag.faults.model import FaultError, FaultUsageError
from keylag.faults.planting import planted
from keylag.faults.probe import Latency
from keylag.faults.registry import FAULTS
from keylag.faults.site import Site
from keylag.jtl import JtlError, JtlReader, Sample
from keylag.launcher import StackError
from keylag.phases import CATEGORY_NAMES, category_of
from keylag.processes import find_processes
from keylag.sample_cloud import CloudSize, initial_data
from keylag.stack import Stack, StackOptions
from keylag.tools import ToolError, Tools
from keylag_dev.diagnosis_cases import (
    RATES,
    Load,
    ScoredCase,
    decoys,
    healthy,
    other_strengths,
    pairs,
    single_faults,
)
from keylag_dev.diagnosis_scores import (
    Score,
    append_score,
    read_scores,
    summary,
    table,
)
from keylag_dev.recorded_facts import record

UNEXPLAINED: Final = "unexplained"
"""What is named if calls are slow or fail and no cause explains it."""
WARM_SECONDS: Final = 30
"""Load before the window, with the faults in place."""
WINDOW_SECONDS: Final = 60.0
SLICES: Final = 10
"""Parts of a window, of which each has a mean latency."""
DOCTOR_SECONDS: Final = 60
FORGET_REVOCATIONS: Final = ("DELETE FROM revocation_event",)
DOCTOR: Final[Mapping[str, str]] = {
    "[cache] enabled` is not enabled": "C1",
    "not completely configured": "C1",
    "Memcached isn't set up properly": "C2",
    "key repository": "T1",
}
"""What `keystone-manage doctor` says, and the cause that it means."""


@contextmanager
def send(stack: Stack, load: Load, folder: Path) -> Iterator[None]:
    """Send the calls of a load while the body runs."""
    senders = [
        subprocess.Popen(
            [
                *(Path(sys.executable).with_name("keylag"), "load", plan),
                *(f"--state={stack.folder}", f"--set=threads={load.clients}"),
                *("--set=loops=-1", "--set=ramp_seconds=0", "--max-errors=100%"),
                f"--set=rate_per_second={RATES.get(plan, 0):g}",
                f"--out={folder / plan}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for plan in load.plans
    ]
    try:
        yield
    finally:
        for sender in senders:
            sender.terminate()
        for sender in senders:
            sender.wait()


def observe(
    stack: Stack, case: ScoredCase, window: float, folder: Path
) -> Iterator[Score]:
    """Yield what the diagnosis says of each window.

    `folder` has the samples of the load.
    """
    time.sleep(WARM_SECONDS)
    window = max(window, case.least_window_seconds)
    for number in range(1, case.windows + 1):
        name = case.window_name(number)
        yield replace(_observe_window(stack, case, window, folder), case=name)


def _observe_window(
    stack: Stack, case: ScoredCase, window: float, folder: Path
) -> Score:
    start = time.time()
    time.sleep(window)
    begun = time.monotonic()
    facts = read_facts(Prometheus(stack.url("prometheus")), Window(start, time.time()))
    said = judge(facts)
    seconds = time.monotonic() - begun
    samples = read_samples(folder, start, start + window)
    return Score(
        case=case.name,
        expected=case.expected,
        load=case.load,
        latency=client_latency(samples),
        slices=slices(samples, start, start + window),
        category=widest_category(facts.served),
        doctor=doctor_says(stack),
        seconds=seconds,
        recorded=record(facts),
        **said,
    )


def judge(facts: Facts) -> dict[str, Any]:
    """Return what the rules say of facts, as fields of a score."""
    diagnosis = diagnose(Case(facts, Expected.shipped(facts)))
    ids = tuple(one.rule.id for one in diagnosis.findings)
    return {
        "named": ids or (UNEXPLAINED,) * diagnosis.is_open,
        "text": _text(diagnosis),
        "document": as_json(diagnosis),
    }


def read_samples(folder: Path, start: float, end: float) -> dict[str, list[Sample]]:
    """Return the clients' samples that began in a window, by kind of call."""
    found = defaultdict[str, list[Sample]](list)
    for file in folder.glob("*/samples.jtl"):
        with suppress(JtlError):
            for one in JtlReader(file):
                if start <= one.start_seconds < end and not one.is_setup:
                    found[one.label].append(one)
    return found


def client_latency(samples: Mapping[str, Sequence[Sample]]) -> dict[str, Latency]:
    """Return the clients' latency of each kind of call."""
    return {
        label: Latency.of(
            [one.elapsed_seconds for one in found],
            sum(not one.success for one in found),
        )
        for label, found in samples.items()
    }


def slices(
    samples: Mapping[str, Sequence[Sample]], start: float, end: float
) -> dict[str, tuple[float, ...]]:
    """Return the mean latency in each slice of a window, by kind of call.

    Calls that follow each other are alike; the means of slices hardly are.
    """
    found: dict[str, tuple[float, ...]] = {}
    for label, ones in samples.items():
        means = []
        for number in range(SLICES):
            begun = start + number * (end - start) / SLICES
            ended = begun + (end - start) / SLICES
            taken = [
                one.elapsed_seconds
                for one in ones
                if begun <= one.start_seconds < ended
            ]
            means += [statistics.fmean(taken)] if taken else []
        found[label] = tuple(means)
    return found


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


def _text(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as the terminal shows it."""
    console = Console(file=io.StringIO(), width=88, record=True)
    render(diagnosis, console)
    return console.export_text()


def widest_category(calls: Sequence[Calls]) -> str:
    """Return the category with most time, as the sentence of a run names it."""
    spent = dict.fromkeys(CATEGORY_NAMES, 0.0)
    for one in calls:
        for cell, seconds in one.cells.items():
            spent[category_of(cell)] += one.per_second * seconds
    return max(spent, key=lambda name: spent[name])


@contextmanager
def under_faults(stack: Stack, case: ScoredCase, folder: Path) -> Iterator[None]:
    """Plant the faults of a case, and send a load, while the body runs.

    The tokens that loads of earlier cases have revoked are forgotten: their number
    would be a cause of its own.
    """
    Site(stack.folder, Console(quiet=True), stack).execute(FORGET_REVOCATIONS)
    with ExitStack() as planted_faults:
        for key, strength in {**case.load.beside, **case.faults}.items():
            planted_faults.enter_context(planted(stack, FAULTS[key], strength))
        with send(stack, case.load, folder):
            yield


def stack_with(options: StackOptions, state: Path, last: ExitStack) -> Stack:
    """Return a stack with these options that runs; `last` stops the one before."""
    folder = state / "-".join((*options.extras, str(options.users)))
    stack = Stack(folder, Tools.load(), options)
    if not stack.is_up():
        last.close()
        last.callback(stack.down)
    # Keystone restarts if it has other options.
    stack.up(initial_data(CloudSize(options.users)))
    return stack


@click.command()
@click.argument("cases", nargs=-1)
@click.option(
    "--healthy",
    "rounds",
    default=1,
    help="Rounds of healthy stacks; each has twelve windows at three loads.  There"
    " is one more, once, at the load of each fault that has another.",
)
@click.option("--window", default=WINDOW_SECONDS, help="Seconds that are diagnosed.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/diagnosis"))
@click.option(
    "--continue",
    "earlier",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of a run that was interrupted: only the cases that it lacks are run.",
)
def main(
    cases: tuple[str, ...],
    rounds: int,
    window: float,
    out: Path,
    earlier: Path | None,
) -> None:
    """Score the diagnosis of planted faults.

    CASES are kinds (healthy, faults, strengths, pairs, decoys), or single ones such as
    C4, "C4 at 2", C4+H3 and "decoy C4"; all by default.  Each score is written at once,
    to scores.jsonl.
    """
    console = Console()
    kinds = {
        "healthy": healthy(rounds),
        "faults": single_faults(),
        "strengths": other_strengths(),
        "pairs": pairs(),
        "decoys": decoys(),
    }
    folder = earlier or out / time.strftime("%Y-%m-%dT%H-%M-%S")
    folder.mkdir(parents=True, exist_ok=earlier is not None)
    done = {one.case for one in read_scores(folder)}
    chosen = [
        case
        for kind, found in kinds.items()
        for case in found
        if not cases or kind in cases or case.name in cases
        if case.window_name(case.windows) not in done
    ]
    with handle_errors(), tempfile.TemporaryDirectory() as state, ExitStack() as last:
        chosen.sort(key=lambda case: _order(case.load.options))
        for number, case in enumerate(chosen, start=1):
            shown = f"{number} of {len(chosen)}, {case.name}"
            loads = Path(state) / "loads" / case.name
            try:
                stack = stack_with(case.load.options, Path(state), last)
                with under_faults(stack, case, loads):
                    for found in observe(stack, case, window, loads):
                        append_score(found, folder)
                        named = " ".join(found.named) or "nothing"
                        console.print(f"{shown}: {named}", highlight=False)
            except (FaultError, FaultUsageError, StackError, ToolError) as error:
                console.print(f"{shown} was left out: {error}")
    show(read_scores(folder), console)


def _order(options: StackOptions) -> tuple[int, tuple[str, ...], int, int]:
    """Return what sorts cases so that few stacks start."""
    extras = options.extras
    return len(extras), extras, options.users, options.threads


def show(scores: Sequence[Score], console: Console) -> None:
    """Print the table of scores and what they come to."""
    console.print(table(scores))
    for line in summary(scores):
        console.print(line)


if __name__ == "__main__":
    main()
