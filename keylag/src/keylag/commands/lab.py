"""`keylag lab`: laboratories in network namespaces."""

import click

from keylag.commands.lab_galera import galera_wan
from keylag.commands.lab_storage import storage
from keylag.commands.lab_swift import swift_regions
from keylag.commands.lab_wan import wan


@click.group("lab")
def command() -> None:
    """Start sites that are far from each other, or slow storage, on this machine.

    A laboratory is made of network namespaces or devices of its own, and changes
    nothing outside of them. It needs root.

    \b
    Examples:
      keylag lab wan up --round-trip 277ms --rate 6Mbit
      keylag lab wan exec a1 -- ping 10.64.2.1
      keylag lab wan down
    """  # noqa: D301 - click reads a backspace


command.add_command(wan)
command.add_command(galera_wan)
command.add_command(swift_regions)
command.add_command(storage)
