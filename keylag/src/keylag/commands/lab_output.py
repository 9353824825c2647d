"""Options and output that the laboratories' measurements share."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from keylag.experiment.interval import Interval
from keylag.state import write_output

seconds_option: Final = click.option(
    "--seconds",
    type=click.IntRange(5, 3600),
    default=20,
    show_default=True,
    help="How long calls are sent.",
)


def new_table(texts: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    """Return a table with columns of texts, and of numbers."""
    table = Table(*texts, box=None)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def milliseconds(seconds: Interval) -> tuple[str, str]:
    """Return an estimate in ms, and its interval; few calls have none."""
    ms = seconds.scaled(1000)
    interval = f"{ms.low:.0f} to {ms.high:.0f}" if ms.is_bounded else "-"
    return f"{ms.mid:.0f}", interval


def keep(document: Mapping[str, Any], folder: Path) -> None:
    """Write what was measured beside its samples; raises OSError."""
    write_output(folder / "measured.json", json.dumps(document, indent=2))


def show(document: Mapping[str, Any], form: str, *parts: Table | str) -> None:
    """Print what was measured: as JSON, or as tables and sentences."""
    if form == "json":
        click.echo(json.dumps(document, indent=2))
        return
    for part in parts:
        if isinstance(part, str):
            click.echo(part)
        else:
            Console().print(part)
