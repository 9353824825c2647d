"""The `keylag` command: a list of its sub-commands, and how each of them ends."""

from importlib import import_module
from typing import Any

import click

from keylag.command_errors import DEBUG, reported

COMMANDS = (
    *("setup", "up", "status", "load", "trace", "explain", "digest", "experiment"),
    *("demo", "down"),
)
"""Each is a module of keylag.commands, in the order that help shows them."""


class Commands(click.Group):
    """Imports the one that is asked for: the others' libraries take a second."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the sub-command; see keylag.command_errors for how it ends."""
        with reported(debug=ctx.params["debug"]):
            return super().invoke(ctx)

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the names, as help lists them."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        """Return the sub-command of this name, if there is one."""
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"keylag.commands.{name}").command
        return command


@click.command(
    "keylag",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted by Ctrl-C. "
    "docs/reference/exit-codes.md says what 1 means for each command.",
)
@click.option(
    "--debug",
    is_flag=True,
    envvar=DEBUG,
    help="Show where an error comes from.  [$KEYLAG_DEBUG]",
)
@click.version_option(package_name="keylag")
def main(*, debug: bool) -> None:
    """Where did the time of this Keystone token call go?

    Start with `keylag demo`: it starts a Keystone of its own, sends it real
    load and prints where the time of each token call went.
    """
