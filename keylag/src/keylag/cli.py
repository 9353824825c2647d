"""The `keylag` command: a list of its sub-commands and nothing else."""

from importlib import import_module

import click

COMMANDS = (
    *("setup", "up", "status", "load", "trace", "explain", "digest", "experiment"),
    *("demo", "down"),
)
"""Each is a module of keylag.commands, in the order that help shows them."""


class Commands(click.Group):
    """Imports the one that is asked for: the others' libraries take a second."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the names, as help lists them."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        """Return the sub-command of this name, if there is one."""
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"keylag.commands.{name}").command
        return command


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Where did the time of this Keystone token call go?

    Start with `keylag demo`: it starts a Keystone of its own, sends it real
    load and prints where the time of each token call went.
    """
