"""Verifies a finding by an experiment: the predicted savings, and the measured ones."""

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from keylag import load_target, results
from keylag.diagnosis.common import name_kind
from keylag.diagnosis.document import as_json as diagnosis_as_json
from keylag.diagnosis.document import kind_key
from keylag.diagnosis.experiment_plan import METHODS, write_plan
from keylag.diagnosis.facts import Kind
from keylag.diagnosis.ranking import Diagnosis, Finding
from keylag.diagnosis.rule import Rule, Saving
from keylag.diagnosis.wording import format_saving
from keylag.errors import KeylagError, WrongUsageError
from keylag.experiment import environment, option_checks
from keylag.experiment.analysis import Comparison
from keylag.experiment.interval import Interval
from keylag.experiment.lock import experiment_lock
from keylag.experiment.plan_parser import read_plan
from keylag.experiment.progress import print_round
from keylag.experiment.remote import SwitchedExecutor
from keylag.experiment.report import write_reports
from keylag.experiment.result import Result, analyse_run
from keylag.experiment.run import FAILED_ENDS, ExperimentRun
from keylag.experiment.run_folder import INTERRUPTED, RunFolder, RunState
from keylag.stack_info import StackInfo
from keylag.state import write_output

KIND: Final = "diagnose"
PLAN: Final = "plan.toml"
SEED_LIMIT: Final = 2**31
AGREES: Final = "agrees"
DISAGREES: Final = "does not agree"
CANNOT_TELL: Final = "cannot tell"
EXIT_CODES: Final = {AGREES: 0, DISAGREES: 1, CANNOT_TELL: 2}


@dataclass(frozen=True)
class Check:
    """What calls of a kind save: as predicted, and as measured at the client."""

    kind: Kind
    predicted: Saving
    measured: Interval | None
    """With its confidence interval; None with too few rounds."""
    sound: bool
    """Whether few enough calls failed."""

    @property
    def verdict(self) -> str:
        """Whether both intervals overlap.

        An interval that holds zero too is too wide to tell.
        """
        if self.measured is None or not self.sound:
            return CANNOT_TELL
        measured, predicted = self.measured, self.predicted
        if measured.high < predicted.low or predicted.high < measured.low:
            return DISAGREES
        return AGREES if measured.low > 0 else CANNOT_TELL


@dataclass(frozen=True)
class Verification:
    """The experiment of a finding, and what it says of the prediction."""

    diagnosis: Diagnosis
    finding: Finding
    folder: Path
    result: Result
    checks: Sequence[Check]

    @property
    def verdict(self) -> str:
        """The verdict on all kinds: one that does not agree decides."""
        verdicts = {one.verdict for one in self.checks}
        return next((v for v in (DISAGREES, AGREES) if v in verdicts), CANNOT_TELL)


def find_finding(diagnosis: Diagnosis, rule: Rule) -> Finding:
    """Return the finding of a rule; raises WrongUsageError if it is none."""
    for one in diagnosis.findings:
        if one.rule is rule:
            return one
        if any(reason.rule is rule for reason in one.explained):
            message = (
                f"{rule.id} is only a symptom of {one.rule.id} {one.rule.name}. Run "
                f"--verify {one.rule.id}."
            )
            raise WrongUsageError(message)
    others = ", ".join(one.rule.id for one in diagnosis.findings)
    choice = f"Choose one of {others}, or" if others else "It has none: choose"
    message = (
        f"{rule.id} {rule.name} is no finding of this window. {choice} another window "
        "with --since."
    )
    raise WrongUsageError(message)


def verify(diagnosis: Diagnosis, rule: Rule, stack: StackInfo) -> Verification:
    """Run the experiment of a finding on the stack, which is as before afterwards.

    Raises WrongUsageError if that is not possible, KeylagError if the experiment fails,
    and KeyboardInterrupt after Ctrl-C.
    """
    finding = find_finding(diagnosis, rule)
    text = write_plan(finding, diagnosis.facts, stack)
    with results.folder(None, KIND, rule.id) as folder:
        write_output(folder / PLAN, text)
        result = _run(RunFolder(folder), stack, finding)
    checks = compare(finding, METHODS[result.plan.load.plan], result.comparisons)
    return Verification(diagnosis, finding, folder, result, checks)


def compare(
    finding: Finding, methods: Mapping[Kind, str], measured: Sequence[Comparison]
) -> list[Check]:
    """Return the checks of all kinds of calls that the load sends."""
    by_method = {one.method: one for one in measured}
    return [
        Check(kind, saving, _saved(found), found.sound)
        for kind, saving in finding.suspicion.savings.items()
        if saving.high > 0 and (found := by_method.get(methods.get(kind, "")))
    ]


def _saved(found: Comparison) -> Interval | None:
    """Return how much shorter the mean of the arm is than that of the base."""
    mean = found.measures.get("mean")
    if mean is None or not math.isfinite(mean.absolute.high):
        return None
    longer = mean.absolute
    return Interval(-longer.high, -longer.mid, -longer.low)


def _run(folder: RunFolder, stack: StackInfo, finding: Finding) -> Result:
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    plan_file = folder.path / PLAN
    plan = read_plan(plan_file)
    option_checks.check_plan(plan, plan_file)
    assert plan.remote  # noqa: S101 - the plan was written with it
    console.print(f"{plan.question} {plan.design.rounds} rounds, {plan_file}")
    for kind, saving in finding.suspicion.savings.items():
        console.print(f"Predicted: {name_kind(kind)} saves {format_saving(saving)}.")
    seed = secrets.randbelow(SEED_LIMIT)
    folder.create(plan_file, RunState(seed, environment.collect(plan)))
    executor = SwitchedExecutor(plan, plan.remote, load_target.from_stack(stack))
    with experiment_lock():
        run = ExperimentRun(
            plan, folder, executor, lambda so_far: print_round(so_far, console)
        )
        run.execute()
    write_reports(folder)
    result = analyse_run(folder)
    for event in result.events:
        console.print(event)
    if result.ended == INTERRUPTED:
        raise KeyboardInterrupt
    if result.ended in FAILED_ENDS:
        message = f"{folder.path}: {result.ended}."
        raise KeylagError(message)
    return result


def render(verification: Verification, console: Console) -> None:
    """Print prediction and measurement of each kind of calls."""
    rule = verification.finding.rule
    title = f"What a call saves without {rule.id} {rule.name}"
    table = Table("call", title=title, title_justify="left", box=None)
    for heading in ("predicted", "measured"):
        table.add_column(heading, justify="right")
    table.add_column("the prediction")
    for one in verification.checks:
        table.add_row(
            name_kind(one.kind),
            format_saving(one.predicted),
            _measured(one),
            one.verdict,
        )
    console.print(table)
    console.print(str(verification.folder), highlight=False, soft_wrap=True)


def _measured(one: Check) -> str:
    if one.measured is None:
        return "-"
    text = format_saving(one.measured)
    return text if one.sound else f"{text}, calls failed"


def _bounds(one: Saving | Interval) -> list[float]:
    return [one.low, one.mid, one.high]


def check_as_json(check: Check) -> dict[str, Any]:
    """Return both savings as bounds and middle, and the verdict."""
    return {
        "predicted_saving_seconds": _bounds(check.predicted),
        "measured_saving_seconds": check.measured and _bounds(check.measured),
        "verdict": check.verdict,
    }


def as_json(verification: Verification) -> dict[str, Any]:
    """Return the finding as in `keylag diagnose --output json`, with the check."""
    rule = verification.finding.rule
    findings = diagnosis_as_json(verification.diagnosis)["findings"]
    finding = next(one for one in findings if one["id"] == rule.id)
    return {
        **finding,
        "experiment": str(verification.folder / PLAN),
        "verification": {
            "verdict": verification.verdict,
            "rounds": verification.result.rounds,
            "seconds": verification.result.seconds,
            "calls": {
                kind_key(one.kind): check_as_json(one) for one in verification.checks
            },
        },
    }
