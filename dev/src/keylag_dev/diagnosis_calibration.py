"""Compares the savings that findings predict with those that experiments measure.

    python -m keylag_dev.diagnosis_calibration [FAULT ...] [--out FOLDER]

For each fault: a load runs, the fault is planted, the diagnosis of a minute predicts,
and the experiment of `keylag diagnose --verify` measures.  Each result is in
calibration.jsonl at once; another call with the same folder continues.
"""

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from keylag.command_errors import handle_errors
from keylag.demo import SAMPLE_CLOUD
from keylag.diagnosis import verification
from keylag.diagnosis.case import Case
from keylag.diagnosis.expected import Expected
from keylag.diagnosis.facts import Window
from keylag.diagnosis.prometheus import Prometheus
from keylag.diagnosis.ranking import Diagnosis, diagnose
from keylag.diagnosis.reading import read_facts
from keylag.diagnosis.registry import RULES
from keylag.errors import KeylagError
from keylag.faults.model import Fault
from keylag.faults.planting import planted
from keylag.faults.registry import FAULTS
from keylag.stack import Stack
from keylag.tools import Tools
from keylag_dev.diagnosis_cases import OPTIONS, single
from keylag_dev.diagnosis_score import WARM_SECONDS, WINDOW_SECONDS, send

RESULTS: Final = "calibration.jsonl"
MILLISECONDS: Final = 1000
HEADING: Final = """\
| fault | calls | predicted, ms | measured, ms | the prediction |
|---|---|---:|---:|---|"""


def calibrate(stack: Stack, fault: Fault, folder: Path) -> dict[str, Any]:
    """Plant a fault, predict what a fix saves, and measure it; return both."""
    with planted(stack, fault):
        with send(stack, single(fault).load, folder):
            diagnosis = _predict(stack)
        named = [one.rule.id for one in diagnosis.findings]
        try:
            found = verification.verify(diagnosis, RULES[fault.id], stack)
        except KeylagError as error:
            return {"fault": fault.key, "named": named, "not_verified": str(error)}
    return {"fault": fault.key, "named": named, **verification.as_json(found)}


def _predict(stack: Stack) -> Diagnosis:
    time.sleep(WARM_SECONDS)
    start = time.time()
    time.sleep(WINDOW_SECONDS)
    facts = read_facts(Prometheus(stack.url("prometheus")), Window(start, time.time()))
    return diagnose(Case(facts, Expected.shipped(facts)))


def table(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield HEADING
    for one in results:
        if "not_verified" in one:
            yield f"| {one['fault']} | | | | not verified: {one['not_verified']} |"
            continue
        for call, found in one["verification"]["calls"].items():
            predicted = _milliseconds(found["predicted_saving_seconds"])
            measured = _milliseconds(found["measured_saving_seconds"])
            cells = (one["fault"], call, predicted, measured, found["verdict"])
            yield f"| {' | '.join(cells)} |"


def _milliseconds(bounds: Sequence[float] | None) -> str:
    if bounds is None:
        return "-"
    low, mid, high = (f"{MILLISECONDS * one:.1f}" for one in bounds)
    return f"{mid} [{low}, {high}]"


def summary(results: Sequence[Mapping[str, Any]]) -> str:
    """Return how many predictions agree with their measurement, as a sentence."""
    verdicts = [
        call["verdict"]
        for one in results
        if "verification" in one
        for call in one["verification"]["calls"].values()
    ]
    agree, apart, unclear = (
        verdicts.count(one)
        for one in (
            verification.AGREES,
            verification.DISAGREES,
            verification.CANNOT_TELL,
        )
    )
    decided = agree + apart
    share = f", {agree / decided:.0%}" if decided else ""
    return (
        f"{agree} of {decided} predictions agree{share}. Undecided: {unclear}. Faults"
        f" without a verification: {sum('not_verified' in one for one in results)}."
    )


def read_results(file: Path) -> list[dict[str, Any]]:
    """Return the results so far."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@click.command()
@click.argument("faults", nargs=-1)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/calibration"),
    show_default=True,
    help="Folder of the results; with results of an earlier call, it continues.",
)
def main(faults: tuple[str, ...], out: Path) -> None:
    """Compare predicted savings with measured ones; some twelve minutes per fault."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / RESULTS
    done = {one["fault"] for one in read_results(file)}
    rest = [FAULTS[key] for key in faults or FAULTS if key not in done]
    with (
        handle_errors(),
        tempfile.TemporaryDirectory() as state,
        Stack(
            Path(state) / "stack", Tools.load(), OPTIONS, initial_data=SAMPLE_CLOUD
        ) as stack,
    ):
        for number, fault in enumerate(rest, start=1):
            click.echo(f"{fault.title}, {number} of {len(rest)}")
            try:
                found = calibrate(stack, fault, Path(state) / "loads" / fault.key)
            except KeylagError as error:
                click.echo(f"{fault.key} was left out: {error}")
                continue
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(found) + "\n")
            for line in table([found]):
                click.echo(line)
    results = read_results(file)
    for line in table(results):
        click.echo(line)
    click.echo(summary(results))


if __name__ == "__main__":
    main()
