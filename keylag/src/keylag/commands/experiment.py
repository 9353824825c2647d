"""`keylag experiment`: compare Keystones, and say how sure one can be."""

import secrets
import sys
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.markdown import Markdown

from keylag import results
from keylag.command_errors import INTERRUPTED
from keylag.commands.common import Function, out_folder_option
from keylag.errors import KeylagError
from keylag.experiment import (
    environment,
    forecast,
    option_checks,
    plan_parser,
    report,
    run_folder,
)
from keylag.experiment.grafana_annotations import TOKEN_VARIABLE, AnnotatingExecutor
from keylag.experiment.plan import MAX_MINUTES, Plan
from keylag.experiment.progress import print_round
from keylag.experiment.remote import RemoteExecutor
from keylag.experiment.run import (
    NOTHING_TO_COMPARE,
    STOPPED_BY_ERROR,
    Executor,
    ExperimentRun,
)
from keylag.experiment.run_folder import RunFolder, RunState
from keylag.experiment.stack_executor import StackExecutor
from keylag.experiment.stack_setup import PLANS_FOLDER
from keylag.state import CHECKOUT, locked, state_folder

KIND = "experiments"
FAILED_ENDS = (STOPPED_BY_ERROR, NOTHING_TO_COMPARE)
"""How a run ends that cannot answer its question."""
SEED_LIMIT = 2**31

RUN_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def monitoring_options(function: Function) -> Function:
    """Add the options that say who else is told while a run goes on."""
    otlp = click.option(
        "--otlp",
        metavar="URL",
        help="A Collector for the arms' metrics, as http://127.0.0.1:4318.",
    )
    grafana = click.option(
        "--grafana",
        metavar="URL",
        help=f"A Grafana to mark the turns in; its token is in {TOKEN_VARIABLE}.",
    )
    return otlp(grafana(function))


minutes_option = click.option(
    "--minutes",
    type=click.FloatRange(0, MAX_MINUTES, min_open=True),
    help="Of the run, once all arms have started.  [default: the plan's]",
)


@click.group("experiment")
def command() -> None:
    """Compare Keystones: which is faster, by how much, how sure, and why.

    \b
    Example:
      keylag experiment run experiments/cache-backends.toml
    """  # noqa: D301 - click reads a backspace


@command.command("run")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@out_folder_option("experiments/PLAN", "samples and reports")
@click.option("--seed", type=click.IntRange(0), help="Of the order.  [default: any]")
@minutes_option
@click.option(
    "--dry-run", is_flag=True, help="Check everything and say what would be run."
)
@monitoring_options
def run(  # noqa: PLR0913 - one for each option
    *,
    file: Path,
    out: Path | None,
    seed: int | None,
    minutes: float | None,
    dry_run: bool,
    otlp: str | None,
    grafana: str | None,
) -> None:
    """Run a plan.

    Each arm is a Keystone with a database and a cache of its own, started afresh
    for every round; in a round each arm has its turn, in random order. The run
    ends when the answer is clear, or the plan's time is over. Ctrl-C ends it
    early; `keylag experiment resume` goes on.

    \b
    Examples:
      keylag experiment run experiments/cache-backends.toml --dry-run
      keylag experiment run experiments/cache-backends.toml --minutes 5
    """  # noqa: D301 - click reads a backspace
    plan = plan_parser.limit_minutes(plan_parser.read_plan(file), minutes)
    option_checks.check_plan(plan, file)
    for line in forecast.describe_plan(plan):
        click.echo(line)
    if dry_run:
        click.echo("All of it can be run; nothing was started.")
        return
    state = RunState(
        seed=secrets.randbelow(SEED_LIMIT) if seed is None else seed,
        environment=environment.collect(plan),
        minutes=minutes,
    )
    with results.folder(out, KIND, file.stem) as made:
        folder = RunFolder(made)
        folder.create(file, state)
        _execute(folder, otlp, grafana)
    _exit_with_status(folder)


@command.command("resume")
@click.argument("folder", type=RUN_FOLDER)
@minutes_option
@monitoring_options
def resume(
    folder: Path, minutes: float | None, otlp: str | None, grafana: str | None
) -> None:
    """Go on with a run that was interrupted, or whose time was over.

    The order is that of the same seed, as if it had never stopped. To give a run
    more time, say with --minutes how many it may take in all; for more rounds,
    change `rounds` in its plan.toml.
    """
    state = RunFolder(folder)
    if minutes:
        plan_parser.limit_minutes(state.load_plan(), minutes)
        state.save_state(replace(state.load_state(), minutes=minutes))
    _execute(state, otlp, grafana)
    _exit_with_status(state)


@command.command("compare")
@click.argument("first", type=RUN_FOLDER)
@click.argument("second", type=RUN_FOLDER)
def compare(first: Path, second: Path) -> None:
    """Compare the arms of two runs.

    They were measured at different times, so what the machine did meanwhile is in
    the difference too: weaker evidence than one run with both.
    """
    text = report.compare_runs(RunFolder(first), RunFolder(second))
    Console().print(Markdown(text))


@command.command("list")
def list_() -> None:
    """List the plans that there are, and the runs."""
    for path in sorted(PLANS_FOLDER.glob("*.toml")):
        click.echo(
            f"{path.relative_to(CHECKOUT)}: {plan_parser.read_plan(path).question}"
        )
    for folder in results.runs("run.json", KIND):
        found = RunFolder(folder).load_state()
        click.echo(f"{folder}: {found.rounds} rounds, {found.ended}")


def _execute(folder: RunFolder, otlp: str | None, grafana: str | None) -> None:
    """Run what is left of a run, and write what it says, however it ends."""
    console = Console()
    plan = folder.load_plan()
    # Two at a time would measure each other.
    with locked(state_folder() / "experiment.lock"):
        executor = _make_executor(plan, console, otlp)
        if grafana:
            executor = AnnotatingExecutor(executor, grafana)
        run = ExperimentRun(
            plan, folder, executor, lambda so_far: print_round(so_far, console)
        )
        try:
            run.execute()
        except OSError as error:
            message = f"{error}. What was measured stays; make room, then resume."
            raise KeylagError(message) from error
    report.write_reports(folder)
    console.print(Markdown((folder.path / "report.md").read_text(encoding="utf-8")))
    console.print(f"{folder.path / 'report.html'}", highlight=False, soft_wrap=True)


def _exit_with_status(folder: RunFolder) -> None:
    """End as the run did: with an exit code, if it has no answer to give."""
    found = folder.load_state()
    if found.ended == run_folder.INTERRUPTED:
        sys.exit(INTERRUPTED)
    if found.ended in FAILED_ENDS:
        why = "; ".join(found.events[-1:]) or "see its report"
        message = f"{folder.path}: {found.ended}: {why}"
        raise KeylagError(message)


def _make_executor(plan: Plan, console: Console, otlp: str | None) -> Executor:
    if plan.elsewhere:
        return RemoteExecutor(plan, plan.elsewhere)
    return StackExecutor(plan, state_folder() / "experiment", console, otlp)
