"""`keylag digest`: pt-query-digest's report on a time window of the slow log."""

from pathlib import Path
from typing import Final

import click

from keylag import pt_query_digest, results
from keylag.commands.common import TimeParam, state_option
from keylag.services.mariadb import slow_log
from keylag.state import write_output

SUFFIXES: Final = {"table": "txt", "json": "json"}


@click.command("digest")
@click.argument(
    "log",
    metavar="[FILE]",
    required=False,
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
)
@click.option("--since", type=TimeParam(), help="Start of the window (inclusive).")
@click.option("--until", type=TimeParam(), help="End of the window (exclusive).")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the report.  [default: a new folder below out/digest]",
)
@click.option(
    "--output",
    "form",
    type=click.Choice(list(pt_query_digest.OUTPUT_FORMATS)),
    default="table",
    show_default=True,
    help="Output format of pt-query-digest.",
)
@state_option
def command(  # noqa: PLR0913, PLR0917 - one for each option
    log: str | None,
    since: float | None,
    until: float | None,
    out: Path | None,
    form: str,
    folder: Path,
) -> None:
    """Run pt-query-digest on a time window of a slow log.

    FILE is a slow log, also compressed with gzip, or - for standard input. The
    default is the slow log of the stack that `keylag up` started. TIME is a time in
    UTC, a time with another UTC offset, or an age: 30s, 10m, 2h, 1d. The window is
    exact to the second.

    \b
    Examples:
      keylag digest --since 10m
      keylag digest slow.log.1.gz --since 2026-11-21T05:54 --until 2026-11-21T05:56
    """  # noqa: D301 - click reads a backspace
    if since is not None and until is not None and since >= until:
        message = "--since has to be before --until."
        raise click.UsageError(message)
    text = pt_query_digest.create_report(
        log or _stack_slow_log(folder), since, until, form
    )
    click.echo(text)
    if out:
        _write(out, text)
    else:
        with results.folder(None, "digest") as made:
            _write(made / f"digest.{SUFFIXES[form]}", text)


def _write(report: Path, text: str) -> None:
    write_output(report, text)
    click.echo(f"Report: {report}", err=True)


def _stack_slow_log(folder: Path) -> str:
    log = slow_log(folder)
    if not log.exists():
        message = (
            f"{log} does not exist. Start a stack with `keylag up`, or name a FILE."
        )
        raise pt_query_digest.DigestError(message)
    return str(log)
