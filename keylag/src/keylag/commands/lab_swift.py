"""`keylag lab swift-regions`: Swift in two regions, with a Keystone at each."""

from dataclasses import asdict, replace
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
from keylag.commands.lab_wan import changed_link, describe_link, link_options
from keylag.lab.swift.bench import GETS, LOG, OBJECTS, BenchLoad, Rates, run_bench
from keylag.lab.swift.lab import LINK, STORAGE_NODES, SwiftRegions
from keylag.lab.swift.measurement import CLIENTS, Load, Measured, measure
from keylag.lab.swift.options import FAR, NEAR, SETS, TOKEN_CACHES, SwiftOptions
from keylag.steps import show_step

folder_option: Final = lab_wan.folder_option("swift-regions")
region_option: Final = click.option(
    "--region",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="Where the clients are.",
)
clients_option: Final = click.option(
    "--clients",
    type=click.IntRange(1, 1000),
    default=CLIENTS,
    show_default=True,
    help="Clients at the same time.",
)


@click.group("swift-regions")
def swift_regions() -> None:
    """Run Swift in two regions, far from each other.

    Each region has four storage nodes, a proxy server, memcached and Keystone. The link
    between them is that of `keylag lab wan`, with 277 ms and 6 Mbit/s.

    \b
    Examples:
      keylag lab swift-regions up
      keylag lab swift-regions measure --region 2
      keylag lab swift-regions bench --clients 16
      keylag lab swift-regions proxies --keystone far
      keylag lab swift-regions down
    """  # noqa: D301 - click reads a backspace


def _proxy_options(function: Function) -> Function:
    """Add the options of the proxy servers, which are None unless they are given."""
    function = click.option(
        "--keystone",
        type=click.Choice([NEAR, FAR]),
        show_default=f"{NEAR} for `up`",
        help="Whether the proxy of region 2 asks the Keystone there, or that of 1.",
    )(function)
    function = click.option(
        "--processes",
        "proxy_processes",
        type=click.IntRange(1, 64),
        show_default=f"{SwiftOptions().proxy_processes} for `up`",
        help="Processes of each proxy server.",
    )(function)
    return click.option(
        "--token-cache",
        type=click.Choice(TOKEN_CACHES),
        show_default=f"{SwiftOptions().token_cache} for `up`",
        help="Where auth_token keeps validated tokens. shared: in the region's"
        " memcached; own: in the memory of each process.",
    )(function)


@swift_regions.command("up")
@click.option(
    "--set",
    "chosen",
    type=click.Choice(list(SETS)),
    default="set3",
    show_default=True,
    help="set1: objects in region 1 only; set2: in both; set3: in both, and each"
    " proxy prefers its own region.",
)
@lab_wan.hosts_option("--nodes", STORAGE_NODES, "Storage nodes of each region.")
@click.option(
    "--container-update-timeout",
    "update_seconds",
    type=lab_wan.DURATION,
    default=f"{SwiftOptions().container_update_seconds:g}s",
    show_default=True,
    help="How long an object server waits for the container's replicas before it"
    " answers a PUT or a DELETE.",
)
@_proxy_options
@link_options
@folder_option
def up(  # noqa: PLR0913 - one for each option
    folder: Path,
    chosen: str,
    *,
    nodes: int,
    update_seconds: float,
    keystone: str | None,
    token_cache: str | None,
    proxy_processes: int | None,
    **given: float | None,
) -> None:
    """Start both regions; those that run start anew, with empty devices.

    They start while the link has no delay. Then the link gets its settings.
    """
    link = changed_link(LINK, given)
    swift = replace(SETS[chosen], container_update_seconds=update_seconds)
    options = _with_proxies(
        swift,
        keystone=keystone,
        token_cache=token_cache,
        proxy_processes=proxy_processes,
    )
    settings = SwiftRegions(folder, nodes).up(link, options, click.echo)
    click.echo(describe_link(settings))
    click.echo(f"Folder of the laboratory: {folder}")


def _with_proxies(options: SwiftOptions, **given: str | int | None) -> SwiftOptions:
    """Return the options with those that are given."""
    changes: dict[str, Any] = {
        name: value for name, value in given.items() if value is not None
    }
    return replace(options, **changes)


@swift_regions.command("proxies")
@_proxy_options
@folder_option
def proxies(folder: Path, **given: str | int | None) -> None:
    """Restart both proxy servers; a setting that is not given stays as it is."""
    lab = SwiftRegions(folder)
    lab.link()
    options = _with_proxies(lab.options(), **given)
    lab.start_proxies(options)
    click.echo("The proxy servers of both regions are up.")


@swift_regions.command("set")
@link_options
@folder_option
def set_link(folder: Path, **given: float | None) -> None:
    """Change the link while Swift runs; the rest stays as it is."""
    lab = SwiftRegions(folder)
    settings = lab.keystones.wan.change(changed_link(lab.link(), given))
    click.echo(f"The link has {settings.link}.")


@swift_regions.command("measure")
@region_option
@seconds_option
@clients_option
@out_folder_option("lab/swift-regions", "the samples")
@output_option()
@folder_option
def measure_calls(  # noqa: PLR0913, PLR0917 - one for each option
    region: int, seconds: int, clients: int, out: Path | None, form: str, folder: Path
) -> None:
    """Write, read and delete objects, and measure them and their tokens' share."""
    lab = SwiftRegions(folder)
    link = lab.link()
    with results.folder(out, "lab", "swift-regions") as samples:
        with show_step(Console(stderr=True), f"Measuring region {region}, {link}"):
            load = Load(region, seconds, clients)
            found = measure(lab, load, samples / "load")
        document = {"link": link.as_json(), **found.as_json()}
        keep(document, samples)
    show(document, form, _table(found), f"{_tokens(found)}. Samples: {samples}")


def _tokens(found: Measured) -> str:
    """Return what tokens took, of the calls that there were."""
    asked = f"{found.validations} calls validated their token in Keystone"
    if found.validation_seconds:
        asked += f", which took {found.validation_seconds * 1000:.0f} ms"
    if found.cached_seconds:
        asked += f"; in all others auth_token took {found.cached_seconds * 1000:.1f} ms"
    return asked


def _table(found: Measured) -> Table:
    figures = ("calls", "failed", "mean, ms", "interval, ms", "token, ms", "share")
    table = new_table(("call",), figures)
    for label, one in found.calls.items():
        table.add_row(
            label,
            str(one.count),
            str(one.failed),
            *milliseconds(one.mean_seconds),
            f"{one.token_seconds * 1000:.1f}",
            f"{one.token_share:.0%}",
        )
    return table


@swift_regions.command("bench")
@region_option
@clients_option
@click.option(
    "--objects",
    type=click.IntRange(1, 10_000),
    default=OBJECTS,
    show_default=True,
    help="Objects that are written, and deleted at the end. Each client should write "
    "several: the last ones do not keep all clients busy.",
)
@click.option(
    "--gets",
    type=click.IntRange(1, 100_000),
    default=GETS,
    show_default=True,
    help="GETs of these objects.",
)
@out_folder_option("lab/swift-bench", "the log of swift-bench")
@output_option()
@folder_option
def bench_rates(  # noqa: PLR0913, PLR0917 - one for each option
    region: int,
    clients: int,
    objects: int,
    gets: int,
    out: Path | None,
    form: str,
    folder: Path,
) -> None:
    """Measure requests per second by swift-bench, one kind after the other.

    All clients write, then all read, then all delete, so PUT, GET and DELETE have a
    rate each; with `measure` they share one. Objects have 1 kB.

    A client waits for each answer. While the servers have time to spare, the rate is
    the number of clients divided by the seconds of an answer; once they are busy, more
    clients do not raise it. So compare settings with several numbers of clients.

    \b
    Examples:
      keylag lab swift-regions bench --clients 4
      keylag lab swift-regions bench --clients 64 --objects 500 --gets 1000
    """  # noqa: D301 - click reads a backspace
    lab = SwiftRegions(folder)
    link, load = lab.link(), BenchLoad(region, clients, objects, gets)
    with results.folder(out, "lab", "swift-bench") as logs:
        step = f"swift-bench at region {region} with {clients} clients, {link}"
        with show_step(Console(stderr=True), step):
            rates = run_bench(lab, load, logs)
        document = {
            "link": link.as_json(),
            **asdict(load),
            "rates": {method: asdict(one) for method, one in rates.items()},
        }
        keep(document, logs)
    show(document, form, _rate_table(rates), f"Log of swift-bench: {logs / LOG}")


def _rate_table(rates: Rates) -> Table:
    table = new_table(("request",), ("requests", "failed", "per second"))
    for method, one in rates.items():
        counts = (str(one.requests), str(one.failed))
        table.add_row(method, *counts, f"{one.per_second:.1f}")
    return table


@swift_regions.command("down")
@folder_option
def down(folder: Path) -> None:
    """Stop everything, and delete all objects; logs stay."""
    stopped = SwiftRegions(folder).down()
    click.echo(f"Stopped {', '.join(stopped)}." if stopped else "No Swift runs.")
