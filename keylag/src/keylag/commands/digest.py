"""`keylag digest`: what pt-query-digest says of a window of the slow log."""

import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from keylag import digest
from keylag.commands.common import stack_folder_option
from keylag.services.mariadb import slow_log
from keylag.state import CHECKOUT, write_output

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
"""Seconds in each unit of a duration."""
SUFFIXES: Final = {"table": "txt", "json": "json"}


class Moment(click.ParamType[float]):
    """A time, or how long ago it was; becomes Unix seconds."""

    name = "TIME"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return Unix seconds; a time without an offset is UTC."""
        if ago := re.fullmatch(r"(\d+)([smhd])", value):
            return time.time() - int(ago[1]) * UNITS[ago[2]]
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value} is no time such as 2026-11-21T05:54 or 10m", param, ctx)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@click.command("digest")
@click.argument(
    "log",
    metavar="[FILE]",
    required=False,
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
)
@click.option("--since", type=Moment(), help="Events from this time on.")
@click.option("--until", type=Moment(), help="Events before this time.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the report is left.  [default: out/digest.txt, or .json]",
)
@click.option(
    "--output",
    "form",
    type=click.Choice(list(digest.FORMS)),
    default="table",
    show_default=True,
    help="pt-query-digest's report, or its JSON.",
)
@stack_folder_option
def command(  # noqa: PLR0913, PLR0917 - one for each option
    log: str | None,
    since: float | None,
    until: float | None,
    out: Path | None,
    form: str,
    folder: Path,
) -> None:
    """Show what pt-query-digest says of a window of the slow log.

    FILE is any slow log, packed with gzip or not, or - for standard input; without
    it, the log of the stack that `keylag up` started. A TIME is a moment in UTC,
    unless it names another offset, or how long ago: 30s, 10m, 2h, 1d. Events are
    told apart by SET timestamp, so to the second.

    \b
    Examples:
      keylag digest --since 10m
      keylag digest /var/lib/mysql/slow.log --since 2026-11-21T05:54 \
          --until 2026-11-21T05:55:30+01:00 --out slow-minute.txt
    """  # noqa: D301 - click reads a backspace
    if since is not None and until is not None and since >= until:
        message = "--since is not before --until, so nothing is between them."
        raise click.UsageError(message)
    where = out or CHECKOUT / "out" / f"digest.{SUFFIXES[form]}"
    text = digest.report(log or _of_stack(folder), since, until, form)
    click.echo(text)
    write_output(where, text)
    click.echo(f"Report: {where}", err=True)


def _of_stack(folder: Path) -> str:
    log = slow_log(folder)
    if not log.exists():
        message = f"There is no {log}. Start a stack with `keylag up`, or name a log."
        raise digest.DigestError(message)
    return str(log)
