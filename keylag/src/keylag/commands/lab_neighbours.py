"""`keylag lab neighbours`: Keystone on a machine that other databases share."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from keylag import results
from keylag.commands import lab_wan
from keylag.commands.common import Function, out_folder_option, output_option
from keylag.commands.lab_output import (
    keep,
    milliseconds,
    new_table,
    seconds_option,
    show,
)
from keylag.lab.neighbours.host import HostFigures
from keylag.lab.neighbours.lab import TENANTS, Neighbours
from keylag.lab.neighbours.levers import LEVERS
from keylag.lab.neighbours.measurement import Calls, Measured, measure
from keylag.lab.neighbours.options import UNLIMITED, NeighbourOptions
from keylag.lab.neighbours.ycsb import OPERATIONS
from keylag.phases import CATEGORY_NAMES
from keylag.stack_info import StackInfo
from keylag.steps import show_step

folder_option: Final = lab_wan.folder_option("neighbours", "on the disk that all share")
CPU_MODES: Final = ("user", "system", "idle", "iowait", "steal")
"""Those that the table has."""
NUMBER: Final = click.IntRange(0, len(TENANTS))


@click.group("neighbours")
def neighbours() -> None:
    """Run Keystone on a machine that the databases of other tenants share.

    Each tenant has a Cassandra, and a YCSB that reads and updates its rows. They share
    processors, memory and disk with Keystone, its database and memcached. Levers are
    settings of the machine that may help; they need root, and `down` takes them back.

    \b
    Examples:
      keylag lab neighbours up --tenants 2
      keylag lab neighbours measure
      keylag lab neighbours set io-weight cpu-weight
      keylag lab neighbours measure
      keylag lab neighbours down
    """  # noqa: D301 - click reads a backspace


def rate_option(
    default: int | None, *, shown: str | bool
) -> Callable[[Function], Function]:
    """Add the option `--rate`."""
    return click.option(
        "--rate",
        type=click.IntRange(UNLIMITED, 1_000_000),
        default=default,
        show_default=shown,
        help="Operations per second of each tenant; 0: as many as 18 threads can send.",
    )


@neighbours.command("up")
@click.option(
    "--tenants",
    type=NUMBER,
    default=NeighbourOptions.tenants,
    show_default=True,
    help="Neighbours of Keystone.",
)
@rate_option(NeighbourOptions.rate_per_second, shown=True)
@click.option(
    "--records",
    type=click.IntRange(1, 100_000_000),
    default=NeighbourOptions.records,
    show_default=True,
    help="Rows of each tenant, of 1 kB each.",
)
@click.option(
    "--password-hash-rounds",
    type=click.IntRange(4, 31),
    default=NeighbourOptions.password_hash_rounds,
    show_default=True,
    help="Cost of a log-in: with fewer, a load has more of the other calls.",
)
@click.option(
    "--monitoring/--no-monitoring",
    "monitored",
    default=NeighbourOptions.monitored,
    show_default=True,
    help="Start the Collector, Prometheus, exporters and Grafana, which take CPU time.",
)
@folder_option
def up(  # noqa: PLR0913 - one for each option
    *,
    folder: Path,
    tenants: int,
    rate: int,
    records: int,
    password_hash_rounds: int,
    monitored: bool,
) -> None:
    """Start Keystone and its neighbours, with all levers off.

    The first start of a tenant writes its rows.
    """
    lab = Neighbours(folder)
    options = NeighbourOptions(tenants, rate, records, password_hash_rounds, monitored)
    lab.up(options, click.echo)
    click.echo(f"Keystone: {StackInfo(lab.stack).url('keystone')}/v3")
    click.echo(f"Folder of the laboratory: {folder}")


@neighbours.command("tenants")
@click.argument("number", type=NUMBER)
@rate_option(None, shown="that of now")
@folder_option
def set_tenants(folder: Path, number: int, rate: int | None) -> None:
    """Let NUMBER tenants run, from 0 to 3.

    The clients of all start anew, and get faster for half a minute, as Java programs
    do.
    """
    lab = Neighbours(folder)
    before = lab.options()
    rate = before.rate_per_second if rate is None else rate
    options = replace(before, tenants=number, rate_per_second=rate)
    lab.set_neighbours(options, click.echo)
    click.echo(f"Tenants that run: {number}.")


@neighbours.command("set")
@click.argument(
    "names", metavar="[LEVER]...", type=click.Choice(list(LEVERS)), nargs=-1
)
@folder_option
def set_levers(folder: Path, names: tuple[str, ...]) -> None:
    """Switch exactly these levers on, and all others off; without any, all off.

    `status` lists the levers and what each sets.
    """
    lab = Neighbours(folder)
    lab.options()
    lab.switches().switch_to(names)
    click.echo(f"Levers that are on: {', '.join(names) or 'none'}.")


@neighbours.command("measure")
@seconds_option
@out_folder_option("lab/neighbours", "the samples")
@output_option()
@folder_option
def measure_calls(seconds: int, out: Path | None, form: str, folder: Path) -> None:
    """Send token calls, and measure them, the neighbours and the machine."""
    lab = Neighbours(folder)
    with results.folder(out, "lab", "neighbours") as samples:
        with show_step(Console(stderr=True), "Sending token calls"):
            found = measure(lab, seconds, samples / "load")
        document = found.as_json()
        keep(document, samples)
    show(
        document,
        form,
        *(calls_table(found.calls), categories_table(found.calls)),
        *([tenants_table(found)] if found.tenants else []),
        host_table(found.host),
        f"Levers that were on: {', '.join(found.levers) or 'none'}. Samples: {samples}",
    )


def calls_table(calls: Mapping[str, Calls]) -> Table:
    """Return what calls took at the client."""
    figures = ("calls", "failed", "p50, ms", "interval, ms", "p95, ms", "interval, ms")
    table = new_table(("call",), figures)
    for label, one in calls.items():
        table.add_row(
            short_label(label),
            *(str(one.count), str(one.failed)),
            *milliseconds(one.p50_seconds),
            *milliseconds(one.p95_seconds),
        )
    return table


def short_label(label: str) -> str:
    """Return the label of a token call without its route."""
    return label.replace(" /v3/auth/tokens", "")


def categories_table(calls: Mapping[str, Calls]) -> Table:
    """Return the time of each category in Keystone."""
    table = new_table(("ms in Keystone", "of"), tuple(CATEGORY_NAMES.values()))
    for label, one in calls.items():
        for quantile in ("p50", "p95"):
            cells = [
                f"{category[quantile] * 1000:.1f}"
                for category in one.categories.values()
            ]
            table.add_row(quantile, short_label(label), *cells)
    return table


def tenants_table(found: Measured) -> Table:
    """Return what the clients of the tenants saw."""
    names = [f"p95 of {name}, ms" for name in OPERATIONS]
    table = new_table(("tenant",), ("operations/s", *names))
    for one in found.tenants:
        p95 = [f"{one.p95_seconds[name] * 1000:.1f}" for name in OPERATIONS]
        table.add_row(str(one.tenant), f"{one.operations_per_second:.0f}", *p95)
    return table


def host_table(host: HostFigures) -> Table:
    """Return what the machine did."""
    table = new_table(("machine",), ("",))
    rows = {
        "requests to the disk, per s": f"{host.requests_per_second:.0f}",
        "queue of the disk": f"{host.disk_queue:.2f}",
        "utilisation of the disk": f"{host.disk_utilisation:.0%}",
        "a read, ms": f"{host.read_seconds * 1000:.2f}",
        "a write, ms": f"{host.write_seconds * 1000:.2f}",
        "a disk cache flush, ms": f"{host.flush_seconds * 1000:.2f}",
        **{f"pressure: {name}": f"{one:.1%}" for name, one in host.pressure.items()},
        **{f"CPU: {mode}": f"{host.cpu.get(mode, 0.0):.1%}" for mode in CPU_MODES},
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


@neighbours.command("status")
@output_option()
@folder_option
def status(folder: Path, form: str) -> None:
    """Print the tenants that run, and all levers."""
    lab = Neighbours(folder)
    options, running, switches = lab.options(), lab.running, lab.switches()
    document = {
        "tenants": running,
        "rate_per_second": options.rate_per_second,
        "records": options.records,
        "password_hash_rounds": options.password_hash_rounds,
        "levers": list(switches.record),
    }
    table = new_table(("lever", "on", "what it sets"), ())
    for name, lever in LEVERS.items():
        table.add_row(name, "yes" if name in switches.record else "-", lever.summary)
    tenants = ", ".join(map(str, running)) or "none"
    rate = (
        f"{options.rate_per_second or 'unlimited'} operations/s on {options.records} "
        "rows each"
    )
    summary = f"Tenants that run: {tenants}, {rate}. Disk: {switches.disk.name}."
    show(document, form, table, summary)


@neighbours.command("down")
@folder_option
def down(folder: Path) -> None:
    """Take all levers back, and stop everything; data and logs stay."""
    stopped = Neighbours(folder).down()
    click.echo(f"Stopped {', '.join(stopped)}." if stopped else "No Keystone runs.")
