"""`keylag setup`: installs the programs that stacks and loads need."""

import time
from collections.abc import Sequence

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from keylag.state import check_path, state_folder
from keylag.steps import Heartbeat
from keylag.tools import DEMO_TOOLS, EXTRA_TOOLS, TOOLS, Tool
from keylag.tools.install import Installer, ReportEvent, ShowBuild
from keylag.tools.programs import install_packages


@click.command("setup")
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["stack", "demo"]),
    default="stack",
    show_default=True,
    help="`demo` leaves out the OpenTelemetry Collector, which takes minutes to build.",
)
@click.option(
    "--with",
    "extras",
    type=click.Choice(list(EXTRA_TOOLS)),
    multiple=True,
    help="Also install the tools for tests, benchmarks or experiments; repeatable.",
)
def command(purpose: str, extras: tuple[str, ...]) -> None:
    """Install the programs that stacks and loads need.

    Installs Debian packages whose programs are missing, without starting their
    services; without the rights to do so, it prints the line that does. Finds each
    other program on the PATH, or builds it. Up-to-date programs are left unchanged,
    so a second run is fast.

    \b
    Example:
      keylag setup
    """  # noqa: D301 - click reads a backspace
    usual = DEMO_TOOLS if purpose == "demo" else TOOLS
    console = Console()
    started = time.monotonic()
    set_up(usual, console, extras)
    seconds = time.monotonic() - started
    console.print(f"Set up in {state_folder()} ({seconds:.1f} s).", soft_wrap=True)


def set_up(usual: Sequence[Tool], console: Console, extras: Sequence[str] = ()) -> None:
    """Install Debian packages and tools, those of `extras` too.

    Raises PathError before anything is made, or ToolError.
    """
    check_path(state_folder())
    install_packages(extras)
    install([*usual, *(tool for name in extras for tool in EXTRA_TOOLS[name])], console)


def install(tools: Sequence[Tool], console: Console) -> None:
    """Install tools and show the progress; raises ToolError if a build fails."""
    folder = state_folder() / "tools"
    if not console.is_terminal:
        Installer(folder, _log_events(console), _heartbeats(console)).install(tools)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        Installer(folder, _show_progress(progress)).install(tools)


def _log_events(console: Console) -> ReportEvent:
    def report(tool: Tool, event: str) -> None:
        console.print(f"{tool.purpose}: {event}", highlight=False, soft_wrap=True)

    return report


def _heartbeats(console: Console) -> ShowBuild:
    return lambda tool: Heartbeat(console, f"{tool.purpose}: building")


def _show_progress(progress: Progress) -> ReportEvent:
    tasks = {}

    def report(tool: Tool, event: str) -> None:
        text = f"{tool.purpose}: {event}"
        if tool.name not in tasks:
            tasks[tool.name] = progress.add_task(text, total=1)
        done = event != "building"
        progress.update(tasks[tool.name], description=text, completed=int(done))

    return report
