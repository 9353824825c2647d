"""`keylag explain`: take one call apart, traced before or made now."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from keylag.commands.common import output_option, stack_folder_option
from keylag.server_timing import BadServerTimingError, parse
from keylag.services.redis import KEY_VARIABLE
from keylag.stack_folder import StackFolder
from keylag.trace import analysis, keystone, sources
from keylag.trace.calls import CALLS
from keylag.trace.exchange import Exchange
from keylag.trace.explanation import Explanation, as_json
from keylag.trace.page import write
from keylag.trace.terminal import render, render_outside

Function = Callable[..., Any]

NO_HEADER: Final = (
    "The answer has no Server-Timing, so this is all that can be known from outside. "
    "With keylag-otel and KEYLAG_SERVER_TIMING=true in Keystone it has; with =signed, "
    f"for those who set {KEY_VARIABLE} to one of its keys. If OSProfiler is on there, "
    "`keylag trace` shows the statements. See docs/how-to/explain-one-call.md."
)


def call_options(function: Function) -> Function:
    """Add `--cloud` and `--url`, the Keystone that a call goes to."""
    cloud = click.option("--cloud", help="A cloud of clouds.yaml.")
    url = click.option("--url", help="Any Keystone, such as http://keystone:5000/v3.")
    return cloud(url(function))


def shown_options(function: Function) -> Function:
    """Add `--output` and `--html`, how an explanation is shown."""
    page = click.option(
        "--html",
        "page",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Also leave a page with a flame graph and all statements.",
    )
    return output_option()(page(function))


@click.command("explain")
@click.argument("trace", metavar="[TRACE]", required=False)
@click.option("--from", "place", metavar="PLACE", help="Where the trace is.")
@click.option(
    "--call",
    "kind",
    type=click.Choice(list(CALLS)),
    default="validate",
    show_default=True,
    help="What to send, without a TRACE.",
)
@call_options
@shown_options
@stack_folder_option
def command(  # noqa: PLR0913, PLR0917 - one for each option
    trace: str | None,
    place: str | None,
    kind: str,
    cloud: str | None,
    url: str | None,
    form: str,
    page: Path | None,
    folder: Path,
) -> None:
    """Take one call apart, traced before or made now.

    TRACE is a trace's id, or a file: what `osprofiler trace show --json` prints, or
    what the Collector's file exporter writes. A PLACE is the connection string of
    OSProfiler's driver (redis://, elasticsearch://, mysql+pymysql://, ...),
    tempo+http://host:3200, jaeger+http://host:16686, or a file; without one it is
    $OSPROFILER_CONNECTION_STRING, or wherever the stack has the trace.

    Without a TRACE it sends a call and explains it by Server-Timing, or from
    outside. Credentials are those of any OpenStack client: clouds.yaml, or the
    variables of an openrc file; without any, the stack's.

    \b
    Examples:
      keylag explain 0f9b6b8e-3bd6-4d3c-8e66-4b6bd0c9a3f5
      keylag explain trace.json --html out/explain.html
      keylag explain --cloud production --call password
    """  # noqa: D301 - click reads a backspace
    stack = StackFolder(folder)
    if trace is None:
        _live(keystone.found(stack, cloud, url), kind, form, page)
        return
    if Path(trace).is_file():
        place, trace = trace, ""
    places = [place] if place else keystone.places_of(stack)
    show(analysis.of_trace(sources.read_first(places, trace)), form, page)


def show(found: Explanation, form: str, page: Path | None) -> None:
    """Print an explanation as asked for, and leave its page."""
    if form == "json":
        click.echo(json.dumps(as_json(found), indent=2))
    else:
        render(found, Console())
    if page:
        write(found, page)
        click.echo(f"Page: {page}", err=True)


def _live(whom: keystone.Keystone, kind: str, form: str, page: Path | None) -> None:
    exchange = whom.send(kind).exchange
    try:
        timing = parse(exchange.server_timing)
    except BadServerTimingError:
        _show_outside(exchange, form)
        return
    show(analysis.of_server_timing(exchange.call, timing), form, page)


def _show_outside(exchange: Exchange, form: str) -> None:
    if form == "json":
        said = {
            "call": exchange.call,
            "source": "client",
            "client_seconds": exchange.total_seconds,
            "parts": exchange.parts,
            "missing": [NO_HEADER],
        }
        click.echo(json.dumps(said, indent=2))
    else:
        render_outside(exchange, NO_HEADER, Console())
