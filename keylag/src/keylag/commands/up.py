"""`keylag up`: starts Keystone and the servers around it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from keylag.commands.common import address_lines, state_option
from keylag.faults.planting import take_back
from keylag.faults.site import Site
from keylag.sample_cloud import CloudSize, initial_data
from keylag.services import EXTRA_SERVICES
from keylag.services.base import MAX_PROCESSES
from keylag.services.keystone import CACHE_BACKENDS
from keylag.stack import Stack, StackOptions
from keylag.stack_info import StackInfo
from keylag.tools import Tools

MAX_USERS = 10_000
NO_EXTRA_SERVICES = "none"


@click.command("up")
@click.option(
    "--cache",
    type=click.Choice(list(CACHE_BACKENDS)),
    help="Keystone's [cache] backend.  [default: that of the last start; at first "
    "null, Keystone's own default]",
)
@click.option(
    "--processes",
    type=click.IntRange(1, MAX_PROCESSES),
    help="Keystone's worker processes.  [default: that of the last start; at first 2]",
)
@click.option(
    "--threads",
    type=click.IntRange(1, MAX_PROCESSES),
    help="Threads in each process.  [default: those of the last start; at first 1]",
)
@click.option(
    "--users",
    type=click.IntRange(1, MAX_USERS),
    help="Users of the sample cloud. Another number creates the database anew; each "
    "user takes a password hash.  [default: those of the last start; at first 100]",
)
@click.option(
    "--with",
    "extras",
    type=click.Choice([*EXTRA_SERVICES, NO_EXTRA_SERVICES]),
    multiple=True,
    help="Start an extra service; repeatable. galera is a second database node, which "
    "forms a Galera cluster with the first one; proxysql runs between Keystone and the "
    "database, and has to be on the PATH; second-node is another Keystone at the same "
    "address, with a memcached of its own, which both nodes use; service is a small "
    "service that validates tokens.  [default: those of the last start; at first none]",
)
@click.option(
    "--new-ports",
    is_flag=True,
    help="Move the stack to other ports; source its openrc again afterwards.",
)
@state_option
def command(
    folder: Path, extras: tuple[str, ...], *, new_ports: bool, **given: Any
) -> None:
    """Start Keystone with a small sample cloud.

    Starts MariaDB, memcached, Redis, the OpenTelemetry Collector, Prometheus and
    Keystone on free ports of 127.0.0.1, and prints their URLs. The ports stay the
    same at later starts. Tempo, Jaeger 2 and Grafana start too if they are on the
    PATH. The stack runs until `keylag down`.

    If the stack runs already, Keystone restarts if its options have changed. The
    whole stack restarts if its services have changed or one of them does not answer.

    \b
    Examples:
      keylag up --cache memcache_pool
      source .keylag/stack/openrc
      openstack token issue

    \b
      keylag up --with second-node --users 1000
      keylag up --with proxysql
      keylag up --with galera
      keylag up --with none     to remove extra services
    """  # noqa: D301 - click reads a backspace
    console = Console()
    if keys := take_back(Site(folder, console)):
        console.print(f"Took back the faults {', '.join(keys)}.")
    running = StackInfo(folder)
    options = merge_options(running.options, extras, **given)
    is_up = running.is_up()
    if is_up:
        message = _already_up_message(running.options, options, new_ports=new_ports)
        console.print(message)
    if not is_up or new_ports or options != running.options:
        stack = Stack(folder, Tools.load(), options, console=console)
        stack.up(initial_data(CloudSize(options.users)), new_ports=new_ports)
    for line in address_lines(StackInfo(folder)):
        console.print(line, highlight=False, soft_wrap=True)


def merge_options(
    before: StackOptions, extras: tuple[str, ...], **given: Any
) -> StackOptions:
    """Return the previous options, updated with those that were given."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if extras:
        chosen["extras"] = tuple(sorted({*extras} - {NO_EXTRA_SERVICES}))
    return replace(before, **chosen)


def _already_up_message(
    before: StackOptions, now: StackOptions, *, new_ports: bool
) -> str:
    if new_ports:
        return "The stack is already running. Restarting it on other ports."
    if now.users != before.users:
        return "The stack is already running. Restarting it with another sample cloud."
    if now.extras != before.extras:
        return "The stack is already running. Restarting it with other services."
    restart = " Restarting Keystone." if now != before else ""
    return f"The stack is already running.{restart}"
