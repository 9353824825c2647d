"""`keylag experiment capacity`: the highest rate that each arm of a plan holds."""

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markdown import Markdown

from keylag import results
from keylag.command_errors import INTERRUPTED
from keylag.commands.common import out_folder_option, output_option
from keylag.commands.experiment_options import (
    anyway_option,
    dry_run_option,
    plan_argument,
    read_runnable_plan,
    require_quiet_machine,
    seed_option,
)
from keylag.errors import KeylagError
from keylag.experiment import run_folder
from keylag.experiment.capacity import report
from keylag.experiment.capacity.open_load import OpenLoad
from keylag.experiment.capacity.run import FAILED_ENDS, CapacityRun, Settings
from keylag.experiment.environment import collect
from keylag.experiment.executors import make_executor
from keylag.experiment.lock import experiment_lock
from keylag.experiment.plan import MAX_MINUTES, Plan

DEFAULTS = Settings()


@click.command("capacity")
@plan_argument
@out_folder_option("capacity/PLAN", "samples and reports")
@seed_option
@click.option(
    "--limit",
    "limit_seconds",
    metavar="SECONDS",
    type=click.FloatRange(0.01, 60),
    default=DEFAULTS.limit_seconds,
    show_default=True,
    help="What the 95th percentile of a rate has to stay below.",
)
@click.option(
    "--trial",
    "trial_seconds",
    metavar="SECONDS",
    type=click.FloatRange(1, 180),
    default=DEFAULTS.trial_seconds,
    show_default=True,
    help="How long a rate is tried, after a warm-up.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    default=DEFAULTS.repeats,
    show_default=True,
    help="How often each arm is measured; a verdict needs four.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0, MAX_MINUTES, min_open=True),
    default=DEFAULTS.minutes,
    show_default=True,
    help="Time limit, after all arms have started.",
)
@dry_run_option
@anyway_option
@output_option()
def command(  # noqa: PLR0913 - one for each option
    *,
    file: Path,
    out: Path | None,
    seed: int,
    dry_run: bool,
    anyway: bool,
    form: str,
    **chosen: Any,
) -> None:
    """Measure the highest rate that each arm of a plan holds.

    A rate is held if 95 % of its requests take less than --limit, and at most 1 %
    fail. The requests of the plan's load arrive at random, like those of many clients,
    whatever the responses take. The rate is raised until it is not held any more, and
    then found to 5 %. The arms are measured one after another, in random order,
    each of them --repeats times. Ctrl-C ends the measurement and keeps what was found.

    \b
    Examples:
      keylag experiment capacity cache-backends --dry-run
      keylag experiment capacity cache-backends --repeats 2 --minutes 60
    """  # noqa: D301 - click reads a backspace
    plan, left_out = read_runnable_plan(file)
    settings = Settings(**chosen)
    if settings.seconds < settings.seconds_to_first_trial:
        message = (
            f"--minutes {settings.minutes:g} is too short: the first trial ends after "
            f"{settings.seconds_to_first_trial:.0f} s."
        )
        raise click.UsageError(message)
    for line in [*report.describe_measurement(plan, settings), *left_out]:
        click.echo(line, err=True)
    if dry_run:
        click.echo("The plan is valid; nothing was started.", err=True)
        return
    environment = collect(plan)
    require_quiet_machine(environment, anyway=anyway)
    # Two experiments at the same time would disturb each other.
    lock = experiment_lock()
    with results.folder(out, "capacity", file.stem) as made, lock:
        (made / "plan.toml").write_bytes(file.read_bytes())
        run = _make_run(plan, settings, seed, environment, made)
        run.events += left_out
        run.execute()
        report.write_reports(run, environment, made)
    _print(made, form)
    if run.ended == run_folder.INTERRUPTED:
        sys.exit(INTERRUPTED)
    if run.ended in FAILED_ENDS:
        advice = " ".join(run.events) or "Give a longer --minutes."
        message = f"{made}: {run.ended}. {advice}"
        raise KeylagError(message)


def _make_run(
    plan: Plan,
    settings: Settings,
    seed: int,
    environment: dict[str, Any],
    folder: Path,
) -> CapacityRun:
    def save(run: CapacityRun) -> None:
        click.echo(report.describe_trial(run), err=True)
        report.write_reports(run, environment, folder)

    return CapacityRun(
        plan,
        settings,
        seed,
        make_executor(plan, Console(stderr=True)),
        OpenLoad(plan, settings.trial_seconds, settings.limit_seconds),
        folder / "jmeter",
        save,
    )


def _print(folder: Path, form: str) -> None:
    name = "result.json" if form == "json" else "report.md"
    text = (folder / name).read_text(encoding="utf-8")
    if form == "json":
        click.echo(text, nl=False)
    else:
        Console().print(Markdown(text))
    click.echo(f"Report: {folder / 'report.md'}", err=True)
