"""`keylag lab wan`: two sites, joined by a link with a settable round trip."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from keylag.commands.common import Function, output_option
from keylag.lab import iproute
from keylag.lab.accuracy import Figure, measure
from keylag.lab.link import Link, parse_duration, parse_rate, parse_ratio
from keylag.lab.network import MOST_HOSTS
from keylag.lab.settings import NETEM, Settings
from keylag.lab.wan import Wan
from keylag.state import state_folder
from keylag.steps import show_step

MECHANISMS: Final = {
    True: "the kernel's netem",
    False: "a relay between TUN devices, because this kernel has no netem",
}
"""What delays the packets, by whether it is netem."""


def hosts_option(name: str, default: int, text: str) -> Callable[[Function], Function]:
    """Return an option for how many hosts of a kind each site has."""
    return click.option(
        name,
        type=click.IntRange(1, MOST_HOSTS),
        default=default,
        show_default=True,
        help=text,
    )


class Quantity(click.ParamType[float]):
    """A number with a unit, such as 100ms, 1% or 6Mbit."""

    name = "QUANTITY"

    def __init__(self, parse: Callable[[str], float], example: str) -> None:
        self._parse = parse
        self._example = example

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number in its base unit."""
        try:
            return self._parse(str(value))
        except ValueError:
            self.fail(f"{value} has no known unit. Use {self._example}.", param, ctx)


DURATION: Final = Quantity(parse_duration, "one like 277ms, 0.5s or 200us")
RATIO: Final = Quantity(parse_ratio, "one like 0.5%")
RATE: Final = Quantity(parse_rate, "one like 6Mbit or 512kbit, or unlimited")


def folder_option(
    lab: str, note: str = "each folder has a network of its own"
) -> Callable[[Function], Function]:
    """Add the option `--state` of a laboratory, passed as `folder`."""
    return click.option(
        "--state",
        "folder",
        type=click.Path(file_okay=False, path_type=Path, resolve_path=True),
        default=lambda: state_folder() / "labs" / lab,
        show_default=f"labs/{lab} in $KEYLAG_STATE or .keylag",
        help=f"Folder of the laboratory; {note}.",
    )


def link_options(function: Function) -> Function:
    """Add the options of a link, which are None unless they are given."""
    for name, parameter, kind, text in (
        ("--rate", "rate_bits_per_second", RATE, "Rate of each direction: 6Mbit."),
        ("--loss", "loss_ratio", RATIO, "Packets lost in each direction: 1%."),
        ("--jitter", "jitter_seconds", DURATION, "How much round trips vary: 10ms."),
        ("--round-trip", "round_trip_seconds", DURATION, "Round trip: 277ms."),
    ):
        option = click.option(name, parameter, type=kind, help=text)
        function = option(function)
    return function


@click.group("wan")
def wan() -> None:
    """Join two sites by a link with a settable round trip.

    Site a has the router a and the hosts a1, a2, ..., site b has b and b1, b2, ...
    Each is a network namespace, in which `exec` runs programs.

    \b
    Examples:
      keylag lab wan up --round-trip 100ms
      keylag lab wan exec b1 -- python3 -m http.server
      keylag lab wan set --round-trip 300ms --loss 1%
      keylag lab wan measure
      keylag lab wan down
    """  # noqa: D301 - click reads a backspace


@wan.command("up")
@hosts_option("--hosts", 3, "Hosts of each site.")
@link_options
@folder_option("wan")
def up(hosts: int, folder: Path, **given: float | None) -> None:
    """Start the network; if it runs, change its link.

    Without options, the link has no delay, loses nothing and has no limit.
    """
    settings = Wan(folder).up(hosts, changed_link(Link(), given))
    click.echo(describe_link(settings))
    click.echo(
        f"Each site has {settings.hosts} hosts; `keylag lab wan status` lists them.\n"
        "Run programs there with `keylag lab wan exec a1 -- PROGRAM`.\n"
        f"Folder of the laboratory: {folder}"
    )


@wan.command("set")
@link_options
@folder_option("wan")
def set_link(folder: Path, **given: float | None) -> None:
    """Change the link while it carries packets; the rest stays as it is."""
    lab = Wan(folder)
    settings = lab.change(changed_link(lab.require().link, given))
    click.echo(f"The link has {settings.link}.")


@wan.command("status")
@output_option()
@folder_option("wan")
def status(form: str, folder: Path) -> None:
    """Show the hosts, the link, and what has passed it."""
    lab = Wan(folder)
    settings = lab.require()
    traffic = lab.traffic()
    hosts = [one for site in lab.network().sites for one in site]
    if form == "json":
        found = {
            "mechanism": settings.mechanism,
            "link": settings.link.as_json(),
            "hosts": [asdict(one) for one in hosts],
            "sent": {name: asdict(one) for name, one in traffic.items()},
        }
        click.echo(json.dumps(found, indent=2))
        return
    table = Table("host", "address", "namespace", box=None)
    for one in hosts:
        table.add_row(one.name, one.address, one.namespace)
    Console().print(table)
    click.echo(describe_link(settings))
    for name, sent in traffic.items():
        click.echo(f"Site {name} has sent {sent.packets} packets, {sent.bytes} bytes.")


@wan.command("exec", context_settings={"allow_interspersed_args": False})
@click.argument("host")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@folder_option("wan")
def run_on_host(host: str, program: tuple[str, ...], folder: Path) -> None:
    """Run a program on a host; its exit code is that of the program.

    Servers that it starts listen on the addresses of the host only. `down` ends them.
    """
    network = Wan(folder).network()
    found = network.find(host)
    if found is None:
        message = f"{host} is no host of this network. Choose one of "
        raise click.UsageError(message + ", ".join(network.names) + ".")
    # What follows the host is the program's own, with or without `--` before it.
    words = program[1:] if program[0] == "--" else program
    command = iproute.command_in(found.namespace, words)
    os.execvp(command[0], command)  # noqa: S606 - the program takes this one's place


@wan.command("measure")
@output_option()
@folder_option("wan")
def measure_link(form: str, folder: Path) -> None:
    """Measure what the link does, and compare it with its settings.

    Takes 20 s to 2 min, longer on a long or slow link. The exit code is 1 if a figure
    differs by more than 2 % and 1 ms; a random one may by 2.5 standard errors more.
    """
    lab = Wan(folder)
    settings = lab.require()
    with show_step(Console(stderr=True), f"Measuring {settings.link}"):
        figures = measure(lab.network(), settings.link)
    if form == "json":
        rows = [{**asdict(one), "is_accurate": one.is_accurate} for one in figures]
        click.echo(json.dumps(rows, indent=2))
    else:
        Console().print(_table(figures))
    if not all(one.is_accurate for one in figures):
        sys.exit(1)


@wan.command("down")
@folder_option("wan")
def down(folder: Path) -> None:
    """Remove the network, and end what runs in it.

    The names of the namespaces tell which belong to the folder, so this works after a
    crash too.
    """
    removed = Wan(folder).down()
    click.echo(
        f"Removed {len(removed)} namespaces." if removed else "No network is running."
    )


def changed_link(link: Link, given: dict[str, float | None]) -> Link:
    """Return a link with the values that were given; raises WrongUsageError."""
    return replace(link, **{k: v for k, v in given.items() if v is not None})


def describe_link(settings: Settings) -> str:
    """Return a sentence about the link, and what delays its packets."""
    mechanism = MECHANISMS[settings.mechanism == NETEM]
    return f"The link has {settings.link}, by {mechanism}."


def _table(figures: list[Figure]) -> Table:
    table = Table("figure", box=None)
    for name in ("set", "measured", "accurate"):
        table.add_column(name, justify="right")
    for one in figures:
        accurate = "yes" if one.is_accurate else "[red]no[/]"
        table.add_row(one.name, f"{one.expected:g}", f"{one.measured:g}", accurate)
    return table
