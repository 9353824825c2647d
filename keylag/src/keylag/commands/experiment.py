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
from keylag.experiment import environment, forecast, journal, known, reading, report
from keylag.experiment.arms import PLANS
from keylag.experiment.elsewhere import Switched
from keylag.experiment.journal import Folder, Journal
from keylag.experiment.marks import TOKEN, Marked
from keylag.experiment.plan import MOST_MINUTES, Plan
from keylag.experiment.progress import say_block
from keylag.experiment.run import COULD_NOT_GO_ON, NOTHING_LEFT, Executor, Run
from keylag.experiment.stacks import Stacks
from keylag.state import CHECKOUT, locked, state_folder

KIND = "experiments"
FAILED = (COULD_NOT_GO_ON, NOTHING_LEFT)
"""How a run ends that cannot answer its question."""
SEEDS = 2**31

a_run = click.Path(exists=True, file_okay=False, path_type=Path)


def shown(function: Function) -> Function:
    """Add the options that say who else is told while a run goes on."""
    otlp = click.option(
        "--otlp",
        metavar="URL",
        help="A Collector for the arms' metrics, as http://127.0.0.1:4318.",
    )
    grafana = click.option(
        "--grafana",
        metavar="URL",
        help=f"A Grafana to mark the turns in; its token is in {TOKEN}.",
    )
    return otlp(grafana(function))


minutes_option = click.option(
    "--minutes",
    type=click.FloatRange(0, MOST_MINUTES, min_open=True),
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
@shown
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
    for every block; in a block each arm has its turn, in random order. The run
    ends when the answer is clear, or the plan's time is over. Ctrl-C ends it
    early; `keylag experiment resume` goes on.

    \b
    Examples:
      keylag experiment run experiments/cache-backends.toml --dry-run
      keylag experiment run experiments/cache-backends.toml --minutes 5
    """  # noqa: D301 - click reads a backspace
    asked = reading.bounded(reading.read(file), minutes)
    known.check(asked, file)
    for line in forecast.lines(asked):
        click.echo(line)
    if dry_run:
        click.echo("All of it can be run; nothing was started.")
        return
    begun = Journal(
        seed=secrets.randbelow(SEEDS) if seed is None else seed,
        environment=environment.record(asked),
        minutes=minutes,
    )
    with results.folder(out, KIND, file.stem) as made:
        folder = Folder(made)
        folder.create(file, begun)
        _go(folder, otlp, grafana)
    _exit(folder)


@command.command("resume")
@click.argument("folder", type=a_run)
@minutes_option
@shown
def resume(
    folder: Path, minutes: float | None, otlp: str | None, grafana: str | None
) -> None:
    """Go on with a run that was interrupted, or whose time was over.

    The order is that of the same seed, as if it had never stopped. To give a run
    more time, say with --minutes how many it may take in all; for more blocks,
    change `blocks` in its plan.toml.
    """
    begun = Folder(folder)
    if minutes:
        reading.bounded(begun.plan(), minutes)
        begun.save(replace(begun.load(), minutes=minutes))
    _go(begun, otlp, grafana)
    _exit(begun)


@command.command("compare")
@click.argument("first", type=a_run)
@click.argument("second", type=a_run)
def compare(first: Path, second: Path) -> None:
    """Compare the arms of two runs.

    They were measured at different times, so what the machine did meanwhile is in
    the difference too: weaker evidence than one run with both.
    """
    text = report.markdown_of_two(Folder(first), Folder(second))
    Console().print(Markdown(text))


@command.command("list")
def list_() -> None:
    """List the plans that there are, and the runs."""
    for path in sorted(PLANS.glob("*.toml")):
        click.echo(f"{path.relative_to(CHECKOUT)}: {reading.read(path).question}")
    for folder in results.runs("run.json", KIND):
        found = Folder(folder).load()
        click.echo(f"{folder}: {found.blocks} blocks, {found.ended}")


def _go(folder: Folder, otlp: str | None, grafana: str | None) -> None:
    """Run what is left of a run, and write what it says, however it ends."""
    console = Console()
    asked = folder.plan()
    # Two at a time would measure each other.
    with locked(state_folder() / "experiment.lock"):
        executor = _executor(asked, console, otlp)
        if grafana:
            executor = Marked(executor, grafana)
        run = Run(asked, folder, executor, lambda so_far: say_block(so_far, console))
        try:
            run.go()
        except OSError as error:
            message = f"{error}. What was measured stays; make room, then resume."
            raise KeylagError(message) from error
    report.write(folder)
    console.print(Markdown((folder.path / "report.md").read_text(encoding="utf-8")))
    console.print(f"{folder.path / 'report.html'}", highlight=False, soft_wrap=True)


def _exit(folder: Folder) -> None:
    """End as the run did: with an exit code, if it has no answer to give."""
    found = folder.load()
    if found.ended == journal.INTERRUPTED:
        sys.exit(INTERRUPTED)
    if found.ended in FAILED:
        why = "; ".join(found.events[-1:]) or "see its report"
        message = f"{folder.path}: {found.ended}: {why}"
        raise KeylagError(message)


def _executor(asked: Plan, console: Console, otlp: str | None) -> Executor:
    if asked.elsewhere:
        return Switched(asked, asked.elsewhere)
    return Stacks(asked, state_folder() / "experiment", console, otlp)
