"""`keylag probe`: the time of each hop to a Keystone."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from keylag.commands.common import output_option, state_option
from keylag.errors import WrongUsageError
from keylag.hops import DECIMALS, HOP_NAMES, Hops, Quantiles, summarize
from keylag.report.formatting import format_ms
from keylag.stack_info import StackInfo
from keylag_exporters.http_probe import HttpProbe, ProbeResult, parse_url
from keylag_exporters.settings import SettingsError

EXIT_FAILED = 1


@click.command("probe")
@click.argument("url", required=False)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of probes.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0),
    default=0.5,
    show_default=True,
    help="Seconds from the start of a probe to the next.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    help="Seconds after which a probe fails.",
)
@click.option(
    "--tls-ca",
    type=click.Path(exists=True, dir_okay=False),
    help="File with CA certificates, instead of the system's.",
)
@output_option("Output format; times in json are seconds.")
@state_option
def command(  # noqa: PLR0913, PLR0917 - one for each option
    url: str | None,
    count: int,
    interval: float,
    timeout: float,
    tls_ca: str | None,
    form: str,
    folder: Path,
) -> None:
    """Show which hop to a Keystone costs most.

    Asks URL several times, each time over a new connection, without a token and
    without following redirects. URL is such as http://keystone:5000/v3; the default
    is that of the stack. Run it where the clients of Keystone run.

    \b
    The rows of the table, in the order in which a client waits:
      DNS       looking up the name; nothing for an address
      connect   opening the TCP connection: one round trip
      TLS       the handshake, if the URL is https
      wait      from the request to the first byte: queues, and Keystone itself
      transfer  the rest of the response

    The exit code is 1 if a probe failed: without a complete response in time, or with
    a status other than 2xx.

    \b
    Examples:
      keylag probe
      keylag probe https://keystone.example.org:5000/v3 --count 60 --interval 1
      keylag probe --output json | jq .slowest
    """  # noqa: D301 - click reads a backspace
    found = _check_url(url) if url else _stack_url(folder)
    try:
        probe = HttpProbe(found, timeout, tls_ca)
    except SettingsError as error:
        message = f"{error}."
        raise WrongUsageError(message) from error
    hops = summarize(list(_probe(probe, count, interval)))
    if form == "json":
        click.echo(json.dumps(_as_json(found, hops), indent=2))
    else:
        _render(found, hops)
    if hops.failures:
        sys.exit(EXIT_FAILED)


def _check_url(url: str) -> str:
    try:
        return parse_url(url)
    except ValueError as error:
        message = f"{error}."
        raise WrongUsageError(message) from error


def _stack_url(folder: Path) -> str:
    stack = StackInfo(folder)
    stack.require_keystone("give a URL")
    return f"{stack.url('keystone')}/v3"


def _probe(probe: HttpProbe, count: int, interval: float) -> Iterator[ProbeResult]:
    for number in range(count):
        started = time.monotonic()
        yield probe.run()
        if number < count - 1:
            time.sleep(max(0.0, started + interval - time.monotonic()))


def _as_json(url: str, hops: Hops) -> dict[str, object]:
    """Return the hops as an object for `--output json`."""
    return {
        "url": url,
        "probes": hops.probes,
        "failures": [
            {"phase": phase, "reason": reason, "probes": number}
            for (phase, reason), number in hops.failures.items()
        ],
        "phases": {phase: asdict(one) for phase, one in hops.phases.items()},
        "total": asdict(hops.total),
        "slowest": hops.slowest,
        "conclusion": hops.conclusion,
    }


def _render(url: str, hops: Hops) -> None:
    table = Table("hop", box=None, pad_edge=False)
    for name in ("p50", "p95", "max"):
        table.add_column(f"{name} ms", justify="right")
    for phase, quantiles in hops.phases.items():
        table.add_row(HOP_NAMES[phase], *_milliseconds(quantiles))
    table.add_row("total", *_milliseconds(hops.total))
    console = Console(soft_wrap=True)
    console.print(f"{url}, {hops.probes} probes", highlight=False)
    console.print(table)
    console.print(hops.conclusion, highlight=False, markup=False)
    for (phase, reason), number in hops.failures.items():
        words = (
            f"{number} of {hops.probes} probes failed at {HOP_NAMES[phase]}: {reason}."
        )
        console.print(words, style="red", highlight=False, markup=False)


def _milliseconds(quantiles: Quantiles) -> Iterator[str]:
    for seconds in asdict(quantiles).values():
        yield format_ms(seconds, DECIMALS)
