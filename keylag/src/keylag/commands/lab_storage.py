"""`keylag lab storage`: Keystone's database on storage of settable quality."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

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
from keylag.commands.lab_wan import DURATION
from keylag.lab.storage import fio, layers
from keylag.lab.storage.calls import Calls, measure
from keylag.lab.storage.lab import StorageLab
from keylag.lab.storage.options import FLUSHES, MOST_DEVICES, StorageOptions
from keylag.state import write_output
from keylag.steps import show_step

folder_option: Final = lab_wan.folder_option("storage")


@click.group("storage")
def storage() -> None:
    """Run Keystone's database on slow storage.

    The storage is the machine's own disk, or a device whose reads and writes take
    longer. fio measures it, and a client measures Keystone's calls on it.

    \b
    Examples:
      keylag lab storage up --delay 5ms
      keylag lab storage fio
      keylag lab storage measure
      keylag lab storage set --delay 0ms --delay 20ms --flush 2
      keylag lab storage down
    """  # noqa: D301 - click reads a backspace


def _check_delays(
    _: click.Context, __: click.Parameter, delays: Sequence[float]
) -> Sequence[float]:
    if len(delays) > MOST_DEVICES:
        message = f"Give it at most {MOST_DEVICES} times, once for each device."
        raise click.BadParameter(message)
    return tuple(round(one, 3) for one in delays)


def _storage_options(function: Function) -> Function:
    for option in (
        click.option(
            "--flush",
            type=click.Choice([str(one) for one in FLUSHES]),
            default="1",
            show_default=True,
            help="innodb_flush_log_at_trx_commit: "
            + "; ".join(f"{value}, {text}" for value, text in FLUSHES.items())
            + ".",
        ),
        click.option(
            "--writes-per-second",
            type=click.IntRange(0),
            default=0,
            show_default="no limit",
            help="Limit of the database's writes, by a control group.",
        ),
        click.option(
            "--delay",
            "delays",
            type=DURATION,
            multiple=True,
            callback=_check_delays,
            help="Put the files on a device whose reads and writes take so much longer,"
            " in whole ms: 5ms. Twice: on two devices with the same data, and a write"
            " waits for both. Without it, they are on the machine's own disk.",
        ),
    ):
        function = option(function)
    return function


@storage.command("up")
@_storage_options
@folder_option
def up(
    folder: Path, delays: Sequence[float], writes_per_second: int, flush: str
) -> None:
    """Start Keystone with its database on the storage; what runs starts anew."""
    options = StorageOptions(delays, writes_per_second, int(flush))
    StorageLab(folder).up(options, click.echo)
    click.echo(f"The database has: {options}. Folder of the laboratory: {folder}")


@storage.command("set")
@_storage_options
@folder_option
def set_storage(
    folder: Path, delays: Sequence[float], writes_per_second: int, flush: str
) -> None:
    """Move the database to other storage, with the data of the first start."""
    lab = StorageLab(folder)
    lab.options()
    options = StorageOptions(delays, writes_per_second, int(flush))
    with show_step(Console(stderr=True), f"Moving the database: {options}"):
        lab.change(options)
    click.echo(f"The database has: {options}.")


@storage.command("fio")
@click.option(
    "--seconds",
    type=click.IntRange(1, 600),
    default=fio.SECONDS,
    show_default=True,
    help=f"How long each of the {fio.MEASUREMENTS} measurements takes.",
)
@out_folder_option("lab/storage-fio", "the figures")
@output_option()
@folder_option
def run_fio(seconds: int, out: Path | None, form: str, folder: Path) -> None:
    """Measure the storage: random reads and writes, and writes that must be on it."""
    lab = StorageLab(folder)
    options, prefix = lab.options(), lab.in_group()
    with results.folder(out, "lab", "storage-fio") as figures:
        with show_step(Console(stderr=True), f"Measuring {options}"):
            flushed = fio.flush(lab.device, prefix=prefix, seconds=seconds)
            rates = list(fio.matrix(lab.device, prefix=prefix, seconds=seconds))
        document: dict[str, Any] = {
            "options": options.as_json(),
            "flush": flushed.as_json(),
            "rates": [one.as_json() for one in rates],
        }
        keep(document, figures)
    summary = (
        f"A write of 4 kB that has to be on the storage takes "
        f"{flushed.seconds * 1000:.2f} ms, of which fdatasync "
        f"{flushed.sync_seconds * 1000:.2f} ms; so does a commit. Figures: {figures}"
    )
    show(document, form, _rates_table(rates), summary)


def _rates_table(rates: Sequence[fio.Rate]) -> Table:
    table = new_table(
        ("access", "block"), ("jobs", "per second", "mean, ms", "p99, ms")
    )
    for one in rates:
        table.add_row(
            one.access,
            one.block,
            str(one.jobs),
            f"{one.per_second:.0f}",
            f"{one.mean_seconds * 1000:.2f}",
            f"{one.p99_seconds * 1000:.2f}",
        )
    return table


@storage.command("layers")
@out_folder_option("lab/storage-layers", "the figures")
@output_option()
@folder_option
def measure_layers(out: Path | None, form: str, folder: Path) -> None:
    """Measure where the time of a read from the device goes.

    Also writes layers.folded, which speedscope and flamegraph.pl show.
    """
    lab = StorageLab(folder)
    options = lab.options()
    with results.folder(out, "lab", "storage-layers") as figures:
        with show_step(Console(stderr=True), f"Measuring layers: {options}"):
            found = layers.measure(lab)
        document = {
            "options": options.as_json(),
            "layers": [one.as_json() for one in found],
        }
        keep(document, figures)
        write_output(figures / "layers.folded", layers.folded(found))
    table = new_table(("layer",), ("self time, ms", "with those below, ms"))
    for one in found:
        times = (one.self_seconds, one.seconds)
        table.add_row(one.name, *(f"{seconds * 1000:.3f}" for seconds in times))
    show(document, form, table, f"Figures: {figures}")


@storage.command("measure")
@seconds_option
@out_folder_option("lab/storage", "the figures")
@output_option()
@folder_option
def measure_calls(seconds: int, out: Path | None, form: str, folder: Path) -> None:
    """Send calls to Keystone of which some write, and measure each."""
    lab = StorageLab(folder)
    options = lab.options()
    with results.folder(out, "lab", "storage") as figures:
        with show_step(Console(stderr=True), f"Measuring calls: {options}"):
            found = measure(lab.stack_folder, seconds)
        document = {
            "options": options.as_json(),
            "calls": {kind: one.as_json() for kind, one in found.items()},
        }
        keep(document, figures)
    show(document, form, _calls_table(found), f"Figures: {figures}")


def _calls_table(found: Mapping[str, Calls]) -> Table:
    figures = ("calls", "failed", "median, ms", "interval, ms", "SQL, ms", "statements")
    table = new_table(("call",), figures)
    for kind, one in found.items():
        table.add_row(
            kind,
            str(one.count),
            str(one.failed),
            *milliseconds(one.median_seconds),
            f"{one.sql_seconds * 1000:.1f}",
            f"{one.statements:.1f}",
        )
    return table


@storage.command("down")
@folder_option
def down(folder: Path) -> None:
    """Stop everything, and remove the devices; logs stay."""
    stopped = StorageLab(folder).down()
    click.echo(f"Stopped {', '.join(stopped)}." if stopped else "Nothing runs.")
