"""How `keylag diagnose` shows what it found: as tables, JSON or a page."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from keylag import results
from keylag.diagnosis.document import as_json
from keylag.diagnosis.html import Report, write_html
from keylag.diagnosis.terminal import render

PAGE: Final = "diagnosis.html"


@dataclass(frozen=True)
class Output:
    """The options of the output."""

    form: str
    grafana: str = ""
    """The URL that links to dashboards begin with."""
    out: Path | None = None
    """The folder for the page, or None for a new one."""
    promql: bool = False
    """Whether tables have the query of each number, as the other forms do."""

    def show(self, reports: Sequence[Report]) -> None:
        """Show one or more diagnoses; several have names."""
        FORMS[self.form](self, reports)


def _print_tables(output: Output, reports: Sequence[Report]) -> None:
    console = Console()
    for one in reports:
        if one.name:
            console.rule(one.name)
        render(one.diagnosis, console, output.grafana, promql=output.promql)


def _print_json(output: Output, reports: Sequence[Report]) -> None:
    found = {one.name: as_json(one.diagnosis, output.grafana) for one in reports}
    click.echo(json.dumps(found.get("", {"runs": found}), indent=2))


def _write_page(output: Output, reports: Sequence[Report]) -> None:
    with results.folder(output.out, "diagnose") as folder:
        write_html(reports, folder / PAGE, output.grafana)
    click.echo(folder / PAGE)


FORMS: Final[Mapping[str, Callable[[Output, Sequence[Report]], None]]] = {
    "table": _print_tables,
    "json": _print_json,
    "html": _write_page,
}
"""What shows diagnoses, by the value of `--output`."""
