"""`keylag experiment`: compare configurations of Keystone under the same load."""

import sys
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.markdown import Markdown

from keylag import results
from keylag.command_errors import INTERRUPTED
from keylag.commands import experiment_capacity
from keylag.commands.common import Function, out_folder_option
from keylag.commands.experiment_options import (
    anyway_option,
    dry_run_option,
    plan_argument,
    read_runnable_plan,
    require_quiet_machine,
    seed_option,
)
from keylag.errors import KeylagError, WrongUsageError
from keylag.experiment import forecast, plan_parser, report
from keylag.experiment.environment import (
    collect,
    keystone_addresses,
    usable_processors,
)
from keylag.experiment.executors import make_executor, stacks_folder
from keylag.experiment.grafana_annotations import AnnotatingExecutor, annotate_verdicts
from keylag.experiment.grafana_api import TOKEN_VARIABLE
from keylag.experiment.grafana_snapshot import keep_snapshot
from keylag.experiment.load_monitor import LoadMonitor
from keylag.experiment.lock import experiment_lock
from keylag.experiment.noise_check import NoiseChecker
from keylag.experiment.plan import MAX_MINUTES, Plan
from keylag.experiment.progress import print_round
from keylag.experiment.result import analyse_run
from keylag.experiment.run import (
    FAILED_ENDS,
    OUT_OF_REACH,
    Executor,
    ExperimentRun,
)
from keylag.experiment.run_folder import INTERRUPTED as INTERRUPTED_RUN
from keylag.experiment.run_folder import RunFolder, RunState
from keylag.experiment.stack_setup import PLANS_FOLDER

KIND = "experiments"

RUN_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def monitoring_options(function: Function) -> Function:
    """Add the options for watching a run: --otlp and --grafana."""
    otlp = click.option(
        "--otlp",
        metavar="URL",
        help="Send the arms' metrics to this Collector, e.g. http://127.0.0.1:4318.",
    )
    grafana = click.option(
        "--grafana",
        metavar="URL",
        help=(
            "Annotate rounds and verdicts in this Grafana, and with --otlp, or remote "
            "Keystones, keep a snapshot of the dashboard of the run; "
            f"{TOKEN_VARIABLE} has its token."
        ),
    )
    return otlp(grafana(function))


minutes_option = click.option(
    "--minutes",
    type=click.FloatRange(0, MAX_MINUTES, min_open=True),
    help="Time limit, after all arms have started.  [default: the plan's]",
)


@click.group("experiment")
def command() -> None:
    """Compare configurations of Keystone under the same load.

    The result is which one is faster, by how much, with which confidence, and
    which part of a request makes the difference.

    \b
    Example:
      keylag experiment run cache-backends
    """  # noqa: D301 - click reads a backspace


command.add_command(experiment_capacity.command)


@command.command("run")
@plan_argument
@out_folder_option("experiments/PLAN", "samples and reports")
@seed_option
@minutes_option
@dry_run_option
@anyway_option
@monitoring_options
def run(  # noqa: PLR0913 - one for each option
    *,
    file: Path,
    out: Path | None,
    seed: int,
    minutes: float | None,
    dry_run: bool,
    anyway: bool,
    otlp: str | None,
    grafana: str | None,
) -> None:
    """Run the experiment of a plan.

    PLAN is a name that `keylag experiment list` prints, or the path of a .toml file.
    Each arm is a Keystone with its own database and cache, or one of yours that
    runs already. In each round, the Keystones are restarted, yours by your commands,
    and every arm has one turn, in random order. The run ends when every arm has a
    verdict, or at the time limit; after a minute, if the noise leaves no chance for
    an interval as narrow as the plan asks. Ctrl-C ends it early and keeps its
    samples; `keylag experiment resume` continues it.

    \b
    Examples:
      keylag experiment run cache-backends --dry-run
      keylag experiment run cache-backends --minutes 5
    """  # noqa: D301 - click reads a backspace
    plan, left_out = read_runnable_plan(file, minutes)
    _reject_otlp(plan, otlp)
    for line in [*forecast.describe_plan(plan), *left_out]:
        click.echo(line)
    if dry_run:
        click.echo("The plan is valid; nothing was started.")
        return
    environment = collect(plan)
    require_quiet_machine(environment, anyway=anyway)
    state = RunState(
        seed=seed,
        environment=environment,
        minutes=minutes,
        arms=plan.arm_names,
        events=left_out,
    )
    with results.folder(out, KIND, file.stem) as made:
        folder = RunFolder(made)
        folder.create(file, state)
        _execute(folder, otlp, grafana, may_stop=not anyway)
    _exit_with_status(folder)


@command.command("resume")
@click.argument("folder", type=RUN_FOLDER)
@minutes_option
@monitoring_options
def resume(
    folder: Path, minutes: float | None, otlp: str | None, grafana: str | None
) -> None:
    """Continue a run that was interrupted or reached its time limit.

    It continues in the order that its seed gives, as if it had never stopped.
    For more time, give the new total with --minutes; for more rounds, change
    `rounds` in the plan.toml of the run.
    """
    run_folder = RunFolder(folder)
    plan = run_folder.load_plan()
    _reject_otlp(plan, otlp)
    _reject_other_keystones(plan, run_folder.load_state())
    _execute(run_folder, otlp, grafana, may_stop=False, minutes=minutes)
    _exit_with_status(run_folder)


@command.command("report")
@click.argument("folder", type=RUN_FOLDER)
def report_(folder: Path) -> None:
    """Analyse the samples of a run again, and write its reports.

    \b
    Example:
      keylag experiment report out/experiments/cache-backends/latest
    """  # noqa: D301 - click reads a backspace
    _write_reports(RunFolder(folder), Console())


@command.command("compare")
@click.argument("first", type=RUN_FOLDER)
@click.argument("second", type=RUN_FOLDER)
def compare(first: Path, second: Path) -> None:
    """Compare the arms of two runs.

    This is weaker evidence than one run with all arms: the runs were measured at
    different times, and changes of the machine are part of the differences.
    """
    text = report.compare_runs(RunFolder(first), RunFolder(second))
    Console().print(Markdown(text))


@command.command("list")
def list_() -> None:
    """List the plans and the runs."""
    for path in sorted(PLANS_FOLDER.glob("*.toml")):
        click.echo(f"{path.stem}: {plan_parser.read_question(path)}")
    for folder in results.runs("run.json", KIND):
        state = RunFolder(folder).load_state()
        click.echo(f"{folder}: {state.rounds} rounds, {state.ended}")


def _reject_otlp(plan: Plan, otlp: str | None) -> None:
    if plan.remote and otlp:
        message = (
            "--otlp has no effect on a remote Keystone, which its operator configures. "
            "Set OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_RESOURCE_ATTRIBUTES, with "
            "keylag.run=ARM, in its environment."
        )
        raise click.UsageError(message)


def _reject_other_keystones(plan: Plan, state: RunState) -> None:
    before = state.environment.get("keystone")
    if plan.remote and before != (now := keystone_addresses(plan)):
        message = (
            f"The run is of {before}, and the environment now has {now}. Export the "
            "former addresses, or start a new run."
        )
        raise WrongUsageError(message)


def _change_limit(folder: RunFolder, minutes: float) -> None:
    """Give a run another time limit; raises UsageError if that ends it sooner."""
    plan, state = folder.load_plan(), folder.load_state()
    if state.rounds and minutes < plan.design.minutes:
        message = (
            f"--minutes {minutes:g} is less than the limit of the run, "
            f"{plan.design.minutes:g}: its intervals would not hold, because an end "
            "that is chosen after a look at them may be chosen for its result."
        )
        raise click.UsageError(message)
    plan_parser.limit_minutes(plan, minutes)
    folder.save_state(replace(state, minutes=minutes))


def _execute(
    folder: RunFolder,
    otlp: str | None,
    grafana: str | None,
    *,
    may_stop: bool,
    minutes: float | None = None,
) -> None:
    console = Console()
    with experiment_lock():
        if minutes:
            _change_limit(folder, minutes)
        plan = folder.load_plan()
        executor: Executor = make_executor(plan, console, otlp)
        if grafana:
            executor = AnnotatingExecutor(executor, grafana)
        run = ExperimentRun(
            plan,
            folder,
            executor,
            lambda so_far: print_round(so_far, console),
            _make_noise_checker(plan, may_stop=may_stop),
        )
        try:
            run.execute()
        except OSError as error:
            message = (
                f"{error}. The samples so far are kept. Free disk space, then run "
                f"`keylag experiment resume {folder.path}`."
            )
            raise KeylagError(message) from error
        if grafana and run.rows and run.state.ended != INTERRUPTED_RUN:
            has_metrics = bool(otlp or plan.remote)
            _keep_verdicts(run, grafana, console, has_metrics=has_metrics)
    _write_reports(folder, console)


def _keep_verdicts(
    run: ExperimentRun, grafana: str, console: Console, *, has_metrics: bool
) -> None:
    # Of a run that has ended: one that Ctrl-C has ended may go on.
    verdicts = analyse_run(run.folder).headlines
    annotate_verdicts(run, grafana, verdicts)
    keep_snapshot(run, grafana, verdicts, console, has_metrics=has_metrics)


def _write_reports(folder: RunFolder, console: Console) -> None:
    report.write_reports(folder)
    console.print(Markdown((folder.path / "report.md").read_text(encoding="utf-8")))
    console.print(f"{folder.path / 'report.html'}", highlight=False, soft_wrap=True)


def _exit_with_status(folder: RunFolder) -> None:
    state = folder.load_state()
    if state.ended == INTERRUPTED_RUN:
        sys.exit(INTERRUPTED)
    if state.ended in FAILED_ENDS:
        reason = "; ".join(state.events[-1:]) or "see its report"
        message = f"{folder.path}: {state.ended}: {reason}"
        if state.ended == OUT_OF_REACH:
            goes_on = f"`keylag experiment resume {folder.path}` goes on anyway."
            message = f"{message} {goes_on}"
        raise KeylagError(message)


def _make_noise_checker(plan: Plan, *, may_stop: bool) -> NoiseChecker:
    stacks = None if plan.remote else stacks_folder()
    return NoiseChecker(plan, LoadMonitor(stacks, usable_processors()), may_stop)
