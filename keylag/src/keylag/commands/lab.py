"""`keylag lab`: laboratories on this machine."""

import click

from keylag.commands.lab_galera import galera_wan
from keylag.commands.lab_neighbours import neighbours
from keylag.commands.lab_storage import storage
from keylag.commands.lab_swift import swift_regions
from keylag.commands.lab_wan import wan


@click.group("lab")
def command() -> None:
    """Start what is hard to try elsewhere, on this machine: it needs root.

    Sites that are far from each other are network namespaces of their own, and slow
    storage is a device of its own; both change nothing outside of them. `neighbours`
    lets others use the machine of a Keystone.

    \b
    Examples:
      keylag lab wan up --round-trip 277ms --rate 6Mbit
      keylag lab wan exec a1 -- ping 10.64.2.1
      keylag lab wan down
      keylag lab storage up --delay 5ms
      keylag lab neighbours up --tenants 2
    """  # noqa: D301 - click reads a backspace


command.add_command(wan)
command.add_command(galera_wan)
command.add_command(swift_regions)
command.add_command(storage)
command.add_command(neighbours)
