"""`keylag explain`: the breakdown of one call, from a trace or sent now."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from keylag.commands.common import output_option, state_option
from keylag.server_timing import BadServerTimingError, parse_server_timing
from keylag.services.redis import HMAC_KEY_VARIABLE
from keylag.stack_info import StackInfo
from keylag.trace import analysis, keystone_access, sources
from keylag.trace.calls import CALLS
from keylag.trace.explanation import Explanation, as_json
from keylag.trace.html import write_html
from keylag.trace.http_exchange import HttpExchange
from keylag.trace.terminal import render_client_view, render_explanation

Function = Callable[..., Any]

NO_SERVER_TIMING: Final = (
    "The response has no Server-Timing header, so only the client's measurement is "
    "available. To see the breakdown, run Keystone with keylag-otel and "
    "KEYLAG_SERVER_TIMING=true. With KEYLAG_SERVER_TIMING=signed, set "
    f"{HMAC_KEY_VARIABLE} to one of Keystone's keys. If OSProfiler is enabled there, "
    "`keylag trace` shows the statements. See docs/how-to/explain-one-call.md."
)


def keystone_options(function: Function) -> Function:
    """Add the options `--cloud` and `--url`, which select a Keystone."""
    cloud = click.option("--cloud", help="Name of a cloud in clouds.yaml.")
    url = click.option(
        "--url", help="URL of a Keystone, such as http://keystone:5000/v3."
    )
    return cloud(url(function))


def display_options(function: Function) -> Function:
    """Add the options `--output` and `--html`."""
    page = click.option(
        "--html",
        "page",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Also write an HTML page with a flame graph and all statements.",
    )
    return output_option()(page(function))


@click.command("explain")
@click.argument("trace", metavar="[TRACE]", required=False)
@click.option(
    "--from", "location", metavar="LOCATION", help="Where the trace is stored."
)
@click.option(
    "--call",
    "kind",
    type=click.Choice(list(CALLS)),
    default="validate",
    show_default=True,
    help="Kind of call to send if there is no TRACE.",
)
@keystone_options
@display_options
@state_option
def command(  # noqa: PLR0913, PLR0917 - one for each option
    trace: str | None,
    location: str | None,
    kind: str,
    cloud: str | None,
    url: str | None,
    form: str,
    page: Path | None,
    folder: Path,
) -> None:
    """Show the breakdown of one call.

    TRACE is the id of a trace, or a file: the output of `osprofiler trace show --json`,
    or a file of the Collector's file exporter. LOCATION is a connection string of
    OSProfiler (redis://, elasticsearch://, mysql+pymysql://, ...),
    tempo+http://host:3200, jaeger+http://host:16686, or a file. By default the
    command searches $OSPROFILER_CONNECTION_STRING, then all trace stores of the stack.

    Without TRACE, the command sends a call and explains it by its Server-Timing
    header; without that header, by the client's own measurement. Credentials come from
    clouds.yaml or the variables of an openrc file, as for any OpenStack client. The
    default is the administrator of the stack.

    \b
    Examples:
      keylag explain 0f9b6b8e-3bd6-4d3c-8e66-4b6bd0c9a3f5
      keylag explain trace.json --html out/explain.html
      keylag explain --cloud production --call password
    """  # noqa: D301 - click reads a backspace
    stack = StackInfo(folder)
    if trace is None:
        _explain_live_call(
            keystone_access.find_keystone(stack, cloud, url), kind, form, page
        )
        return
    if Path(trace).is_file():
        location, trace = trace, ""
    locations = [location] if location else keystone_access.trace_locations(stack)
    show_explanation(
        analysis.explain_trace(sources.read_first(locations, trace)), form, page
    )


def show_explanation(found: Explanation, form: str, page: Path | None) -> None:
    """Print an explanation as "table" or "json", and write its HTML page.

    Raises OSError if the page cannot be written.
    """
    if form == "json":
        click.echo(json.dumps(as_json(found), indent=2))
    else:
        render_explanation(found, Console())
    if page:
        write_html(found, page)
        click.echo(f"Page: {page}", err=True)


def _explain_live_call(
    access: keystone_access.KeystoneAccess, kind: str, form: str, page: Path | None
) -> None:
    exchange = access.send(kind).exchange
    try:
        timing = parse_server_timing(exchange.server_timing)
    except BadServerTimingError:
        _show_client_view(exchange, form)
        return
    show_explanation(analysis.explain_server_timing(exchange.call, timing), form, page)


def _show_client_view(exchange: HttpExchange, form: str) -> None:
    if form == "json":
        document = {
            "call": exchange.call,
            "source": "client",
            "client_seconds": exchange.total_seconds,
            "parts": exchange.parts,
            "missing": [NO_SERVER_TIMING],
        }
        click.echo(json.dumps(document, indent=2))
    else:
        render_client_view(exchange, NO_SERVER_TIMING, Console())
