"""`keylag lab galera-wan`: a Galera cluster over two sites, with a Keystone at each."""

import json
import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from keylag import results
from keylag.commands import lab_wan
from keylag.commands.common import out_folder_option, output_option
from keylag.commands.lab_output import (
    keep,
    milliseconds,
    new_table,
    seconds_option,
    show,
)
from keylag.commands.lab_wan import changed_link, describe_link, link_options
from keylag.lab import intervals
from keylag.lab.galera.lab import USERS, GaleraWan
from keylag.lab.galera.measurement import Measured, measure
from keylag.lab.galera.node import JOIN_SECONDS, Node
from keylag.lab.galera.options import NODES, WAN_PROVIDER_OPTIONS, ClusterOptions
from keylag.lab.galera.rally import (
    CONCURRENCY,
    SCENARIOS,
    TIMES,
    WORKERS,
    Iterations,
    RallyLoad,
    run_scenario,
)
from keylag.lab.link import Link
from keylag.phases import CATEGORY_NAMES
from keylag.steps import show_step

BUSY_SHARE: Final = 0.9
"""Of the workers, from which on an iteration usually waits for a free one."""
SHOWN: Final = (
    "local_state_comment",
    "cluster_status",
    "cluster_size",
    "last_committed",
    "flow_control_paused",
    "local_cert_failures",
)
"""What `status` shows of a node, by Galera's names."""


folder_option: Final = lab_wan.folder_option("galera-wan")


@click.group("galera-wan")
def galera_wan() -> None:
    """Run Keystone on a Galera cluster of six nodes over two sites.

    Each site has three MariaDB nodes, HAProxy before them, memcached and Keystone.
    The link between the sites is that of `keylag lab wan`.

    \b
    Examples:
      keylag lab galera-wan up --round-trip 200ms
      keylag lab galera-wan status
      keylag lab galera-wan rally
      keylag lab galera-wan kill b1
      keylag lab galera-wan start b1
      keylag lab galera-wan unplug b1
      keylag lab galera-wan plug b1
      keylag lab galera-wan down
    """  # noqa: D301 - click reads a backspace


@galera_wan.command("up")
@click.option(
    "--segments/--no-segments",
    default=True,
    show_default=True,
    help="Make each site a segment of the cluster: a write passes the link once.",
)
@lab_wan.hosts_option("--nodes", NODES, "Database nodes of each site.")
@click.option(
    "--users",
    type=click.IntRange(1, 10_000),
    default=USERS,
    show_default=True,
    help="Users of the cloud; each takes a password hash at the first start.",
)
@click.option(
    "--database",
    type=click.Choice(["near", "far"]),
    default="near",
    show_default=True,
    help="Far: Keystone at site a reads from and writes to the nodes of site b.",
)
@click.option(
    "--sync-wait/--no-sync-wait",
    default=False,
    show_default=True,
    help="Let Keystone's reads wait until the node has all writes.",
)
@click.option(
    "--cache",
    type=click.Choice(["memcache_pool", "null"]),
    default="memcache_pool",
    show_default=True,
    help="Keystone's cache.",
)
@click.option(
    "--settings",
    "galera_settings",
    type=click.Choice(["wan", "default"]),
    default="wan",
    show_default=True,
    help="Time-outs and send windows of Galera: for a long link, or its own.",
)
@link_options
@folder_option
def up(  # noqa: PLR0913 - one for each option
    folder: Path,
    nodes: int,
    users: int,
    *,
    segments: bool,
    database: str,
    sync_wait: bool,
    cache: str,
    galera_settings: str,
    **given: float | None,
) -> None:
    """Start the cluster and both Keystones; a cluster that runs starts anew.

    Its nodes join while the link has no delay. Then the link gets its settings.
    """
    link = changed_link(Link(), given)
    options = ClusterOptions(
        nodes,
        segments,
        far_database=database == "far",
        sync_wait=sync_wait,
        cache=cache,
        provider=WAN_PROVIDER_OPTIONS if galera_settings == "wan" else {},
    )
    settings = GaleraWan(folder, users).up(link, options, click.echo)
    click.echo(describe_link(settings))
    click.echo(f"Folder of the laboratory: {folder}")


@galera_wan.command("set")
@link_options
@folder_option
def set_link(folder: Path, **given: float | None) -> None:
    """Change the link while the cluster runs; the rest stays as it is."""
    lab = GaleraWan(folder)
    settings = lab.wan.change(changed_link(lab.link(), given))
    click.echo(f"The link has {settings.link}.")


@galera_wan.command("status")
@output_option()
@folder_option
def status(form: str, folder: Path) -> None:
    """Show Galera's status of each node."""
    found = GaleraWan(folder).status()
    if form == "json":
        click.echo(json.dumps(found, indent=2))
        return
    table = Table("node", *SHOWN, box=None)
    for name, values in found.items():
        table.add_row(name, *(values.get(one, "down") for one in SHOWN))
    Console().print(table)


@galera_wan.command("measure")
@seconds_option
@click.option(
    "--both-sites",
    is_flag=True,
    help="Let a client at site b send the same calls meanwhile, so that both sites "
    "write. The table has those of site a.",
)
@out_folder_option("lab/galera-wan", "the samples")
@output_option()
@folder_option
def measure_calls(
    seconds: int, out: Path | None, form: str, folder: Path, *, both_sites: bool
) -> None:
    """Send token calls at site a, and measure them and the traffic of a write."""
    lab = GaleraWan(folder)
    link = lab.link()
    with results.folder(out, "lab", "galera-wan") as samples:
        with show_step(Console(stderr=True), f"Measuring {link}"):
            found = measure(lab, link, seconds, samples / "load", both_sites=both_sites)
        document = found.as_json()
        keep(document, samples)
    summary = f"{_writes(found)}. Causes named: {_causes(found)}. Samples: {samples}"
    show(document, form, _table(found), summary)


def _writes(found: Measured) -> str:
    size = found.bytes_per_write
    each = "" if size is None else f", each with {size / 1000:.1f} kB over the link"
    return f"{found.writes} writes{each}; {found.conflicts} conflicts"


def _causes(found: Measured) -> str:
    return "unknown" if found.causes is None else ", ".join(found.causes) or "none"


def _table(found: Measured) -> Table:
    figures = ("calls", "failed", "median, ms", "interval, ms", "its SQL, ms")
    table = new_table(("call",), figures)
    for label, one in found.calls.items():
        counts = (str(one.count), str(one.failed))
        sql = "-" if one.sql_seconds is None else f"{one.sql_seconds * 1000:.0f}"
        table.add_row(label, *counts, *milliseconds(one.median), sql)
    return table


@galera_wan.command("rally")
@click.option(
    "--times",
    type=click.IntRange(1, 10_000),
    default=TIMES,
    show_default=True,
    help="Iterations of each scenario.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 100),
    default=CONCURRENCY,
    show_default=True,
    help="Iterations at the same time.",
)
@click.option(
    "--users",
    type=click.IntRange(1, 100),
    help="Users who log in; with fewer than iterations at the same time, Galera may "
    "refuse their first log-ins.  [default: as many as iterations at the same time]",
)
@out_folder_option("lab/galera-rally", "Rally's reports")
@output_option()
@folder_option
def run_rally(  # noqa: PLR0913 - one for each option
    *,
    times: int,
    concurrency: int,
    users: int | None,
    out: Path | None,
    form: str,
    folder: Path,
) -> None:
    """Run Rally's scenarios of users at site a, with 50 revocation events.

    They create a user, and create a user and list all. Rally deletes its users
    afterwards, which takes longer than the scenario if the link is long.
    """
    lab = GaleraWan(folder)
    link, load = lab.link(), RallyLoad(times, concurrency, users)
    found: dict[str, Iterations] = {}
    with results.folder(out, "lab", "galera-rally") as reports:
        for name in SCENARIOS:
            with show_step(Console(stderr=True), f"Running {name} over {link}"):
                found[name] = run_scenario(lab, name, reports / name, load)
        document = {
            "link": link.as_json(),
            "times": times,
            "concurrency": concurrency,
            "users": users or concurrency,
            "scenarios": {name: one.as_json() for name, one in found.items()},
        }
        keep(document, reports)
    sentences = [keystone_sentence(name, one) for name, one in found.items()]
    reported = f"Rally's reports: {reports}"
    show(document, form, _rally_table(found), *sentences, reported)


def keystone_sentence(scenario: str, found: Iterations) -> str:
    """Return where the time of a mean iteration of Rally went."""
    if not found.keystone_seconds:
        return f"Where the time of {scenario} went is not known."
    parts = sorted(found.keystone_seconds.items(), key=lambda one: -one[1])
    named = ", ".join(
        f"{seconds * 1000:.0f} ms {CATEGORY_NAMES[name]}" for name, seconds in parts[:3]
    )
    rest = sum(seconds for _, seconds in parts[3:])
    return (
        f"A mean iteration of {scenario}: {named} and {rest * 1000:.0f} ms of other "
        f"parts in Keystone, {found.outside_seconds * 1000:.0f} ms outside of it. "
        f"{found.busy_workers:.1f} of Keystone's {WORKERS} workers were busy. "
        f"{_outside_cause(found.busy_workers)}"
    )


def _outside_cause(busy_workers: float) -> str:
    if busy_workers < BUSY_SHARE * WORKERS:
        return (
            "So the time outside is Rally's, and a wait for a free one only with more "
            f"than {WORKERS} iterations at the same time."
        )
    return (
        "So an iteration waits for a free one: less time in Keystone, or fewer "
        "iterations at the same time, shorten the time outside, too."
    )


def _rally_table(found: Mapping[str, Iterations]) -> Table:
    figures = ("done", "failed", "median, ms", "interval, ms")
    table = new_table(("scenario", "action"), figures)
    for scenario, one in found.items():
        for action, seconds in {"whole iteration": one.seconds, **one.actions}.items():
            counts = (str(len(seconds)), str(len(one.errors)))
            table.add_row(
                scenario, action, *counts, *milliseconds(intervals.median(seconds))
            )
    return table


@galera_wan.command("kill")
@click.argument("name", metavar="NODE")
@folder_option
def kill(name: str, folder: Path) -> None:
    """Kill the server process of a database node (SIGKILL)."""
    _find(GaleraWan(folder), name).kill()
    click.echo(f"{name} was killed. `keylag lab galera-wan start {name}` starts it.")


@galera_wan.command("start")
@click.argument("name", metavar="NODE")
@click.option(
    "--forget-data",
    is_flag=True,
    help="Let it join by SST: a copy of all data of another node.",
)
@folder_option
def start(name: str, folder: Path, *, forget_data: bool) -> None:
    """Start a database node, and wait until it is synced.

    It joins by IST, with the writes that it lacks, or by SST if too many are missing,
    which can take minutes over a long link.
    """
    lab = GaleraWan(folder)
    node = _find(lab, name)
    if node.pids():
        message = f"{name} runs already."
        raise click.UsageError(message)
    if forget_data:
        node.forget_data()
    with _waiting_for(name):
        seconds = lab.cluster().start_node(node)
    click.echo(f"{name} was synced after {math.ceil(seconds)} s.")


@galera_wan.command("unplug")
@click.argument("name", metavar="NODE")
@folder_option
def unplug(name: str, folder: Path) -> None:
    """Cut a database node from all others; its server goes on alone."""
    lab = GaleraWan(folder)
    lab.wan.unplug(_find(lab, name).name)
    click.echo(f"{name} was cut off. `keylag lab galera-wan plug {name}` joins it.")


@galera_wan.command("plug")
@click.argument("name", metavar="NODE")
@folder_option
def plug(name: str, folder: Path) -> None:
    """Join a database node that was cut off, and wait until all are synced members."""
    lab = GaleraWan(folder)
    _find(lab, name)
    lab.wan.plug(name)
    # Until it has noticed that it was cut off, it says that it is synced.
    with _waiting_for(name):
        lab.cluster().wait_until_whole(time.monotonic() + JOIN_SECONDS)
    click.echo("All nodes are synced.")


@galera_wan.command("down")
@folder_option
def down(folder: Path) -> None:
    """Stop everything; data and logs stay."""
    stopped = GaleraWan(folder).down()
    click.echo(f"Stopped {', '.join(stopped)}." if stopped else "No cluster runs.")


def _waiting_for(name: str) -> AbstractContextManager[object]:
    """Show that a database node is on its way back, until the context ends."""
    return show_step(Console(stderr=True), f"Waiting until {name} has all writes")


def _find(lab: GaleraWan, name: str) -> Node:
    cluster = lab.cluster()
    node = cluster.find(name)
    if node is None:
        names = ", ".join(one.name for one in cluster.nodes)
        message = f"{name} is no database node. Choose one of {names}."
        raise click.UsageError(message)
    return node
