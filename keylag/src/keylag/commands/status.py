"""`keylag status`: each process of the stack, and whether it answers."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from keylag.commands.common import output_option, stack_folder_option
from keylag.status import ProcessStatus, stack_status

SHOWN = {
    (True, True): "[green]answers[/]",
    (True, False): "[red]does not answer[/]",
    (False, False): "[red]not running[/]",
}
"""(it runs, it is healthy) and how that is said."""
NOT_ALL_HEALTHY = 1


@click.command("status")
@output_option("json is for scripts: a list with one object per service.")
@stack_folder_option
def command(form: str, folder: Path) -> None:
    """Show each process of the stack, its ports and whether it answers.

    Ends with code 0 if every service answers, else with 1.

    \b
    Example:
      keylag status --output json
    """  # noqa: D301 - click reads a backspace
    statuses = stack_status(folder)
    if form == "json":
        click.echo(json.dumps([as_dict(status) for status in statuses], indent=2))
    else:
        console = Console()
        console.print(table(statuses))
        console.print(f"The stack's folder is {folder}.", soft_wrap=True)
    if not all(status.healthy for status in statuses):
        sys.exit(NOT_ALL_HEALTHY)


def as_dict(status: ProcessStatus) -> dict[str, object]:
    """Return a status as what `--output json` shows."""
    return {**asdict(status), "log": str(status.log)}


def table(statuses: list[ProcessStatus]) -> Table:
    """Return the statuses as a table; each service's first port is its own."""
    made = Table("service", "pid", "port", "health", "log", box=None)
    for status in statuses:
        made.add_row(
            status.service,
            str(status.pid or "-"),
            str(next(iter(status.ports.values()), "-")),
            SHOWN[status.pid is not None, status.healthy],
            f"{status.log.parent.name}/{status.log.name}",
        )
    return made
