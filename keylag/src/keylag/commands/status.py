"""`keylag status`: the services of a stack and their health."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from keylag.commands.common import output_option, state_option
from keylag.status import ServiceStatus, stack_status

HEALTH_TEXT = {
    (True, True): "[green]answers[/]",
    (True, False): "[red]does not answer[/]",
    (False, False): "[red]not running[/]",
}
"""Display text by (is running, is healthy)."""
EXIT_UNHEALTHY = 1


@click.command("status")
@output_option("Output format; json is a list with one object per service.")
@state_option
def command(form: str, folder: Path) -> None:
    """Show the services of the stack, their ports and their health.

    The exit code is 0 if all services are healthy, else 1.

    \b
    Example:
      keylag status --output json
    """  # noqa: D301 - click reads a backspace
    statuses = stack_status(folder)
    if form == "json":
        click.echo(json.dumps([status_dict(status) for status in statuses], indent=2))
    else:
        console = Console()
        console.print(status_table(statuses))
        console.print(f"Folder of the stack: {folder}", soft_wrap=True)
    if not all(status.healthy for status in statuses):
        sys.exit(EXIT_UNHEALTHY)


def status_dict(status: ServiceStatus) -> dict[str, object]:
    """Return a status as an object for `--output json`."""
    return {**asdict(status), "log": str(status.log)}


def status_table(statuses: list[ServiceStatus]) -> Table:
    """Return a table of the services, each with its first port."""
    table = Table("service", "pid", "port", "health", "log", box=None)
    for status in statuses:
        table.add_row(
            status.service,
            str(status.pid or "-"),
            str(next(iter(status.ports.values()), "-")),
            HEALTH_TEXT[status.pid is not None, status.healthy],
            f"{status.log.parent.name}/{status.log.name}",
        )
    return table
