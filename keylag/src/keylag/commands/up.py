"""`keylag up`: start a Keystone of your own, with everything around it."""

from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from keylag.commands.common import addresses, stack_folder_option
from keylag.demo import CLOUD
from keylag.record import Record
from keylag.services import EXTRAS
from keylag.services.keystone import CACHE_BACKENDS
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools

MAX_PROCESSES = 64
NO_EXTRAS = "none"


@click.command("up")
@click.option(
    "--cache",
    type=click.Choice(list(CACHE_BACKENDS)),
    help="Keystone's [cache] backend.  [default: as last time; at first null, "
    "which is Keystone's own default]",
)
@click.option(
    "--processes",
    type=click.IntRange(1, MAX_PROCESSES),
    help="Keystone's worker processes.  [default: as last time; at first 2]",
)
@click.option(
    "--with",
    "extras",
    type=click.Choice([*EXTRAS, NO_EXTRAS]),
    multiple=True,
    help="Start this, too; a program of its own has to be on the PATH. proxysql goes "
    "between Keystone and the database; service is a small service that asks Keystone "
    "about tokens.  [default: as last time; at first none]",
)
@click.option(
    "--new-ports",
    is_flag=True,
    help="Move the stack to other ports; source its openrc again afterwards.",
)
@stack_folder_option
def command(
    cache: str | None,
    processes: int | None,
    extras: tuple[str, ...],
    folder: Path,
    *,
    new_ports: bool,
) -> None:
    """Start a Keystone of your own, with everything around it.

    Starts MariaDB, memcached, Redis, the OpenTelemetry Collector, Prometheus
    and Keystone with a small cloud in it, on free ports of 127.0.0.1, and
    prints where they are; the ports stay the same from then on. Tempo, Jaeger 2 and
    Grafana are started where they are on the PATH. They run until `keylag down`.
    If the stack is up already, only Keystone is restarted, and only if it is asked
    to run differently; everything is if it is to have other servers, or one of
    them does not answer.

    \b
    Examples:
      keylag up --cache memcache_pool
      source .keylag/stack/openrc
      openstack token issue

    \b
      keylag up --with proxysql
      keylag up --with none     the usual servers again
    """  # noqa: D301 - click reads a backspace
    console = Console()
    before = Record.load(folder).options
    options = wanted(before, cache, processes, extras)
    stack = Stack(folder, Tools.load(), options, prepared=CLOUD, console=console)
    if stack.is_up():
        console.print(_already_up(before, options, new_ports=new_ports))
    stack.up(new_ports=new_ports)
    for line in addresses(stack):
        console.print(line, highlight=False, soft_wrap=True)


def wanted(
    before: StackOptions,
    cache: str | None,
    processes: int | None,
    extras: tuple[str, ...],
) -> StackOptions:
    """Return the options of last time, but for what was asked for now."""
    return replace(
        before,
        cache=cache or before.cache,
        processes=processes or before.processes,
        extras=tuple(sorted({*extras} - {NO_EXTRAS})) if extras else before.extras,
    )


def _already_up(before: StackOptions, now: StackOptions, *, new_ports: bool) -> str:
    if new_ports:
        return "The stack is already up; restarting it on other ports."
    if now.extras != before.extras:
        return "The stack is already up; restarting it with other servers."
    return f"The stack is already up{'; restarting Keystone' if now != before else ''}."
