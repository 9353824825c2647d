"""The `keylag` command and the list of its sub-commands."""

from importlib import import_module
from typing import Any

import click

from keylag.command_errors import DEBUG_VARIABLE, handle_errors

COMMANDS = (
    *("setup", "up", "status", "load", "diagnose", "probe", "trace", "explain"),
    *("digest", "experiment", "fault", "demo", "lab", "engine", "down", "files"),
)
"""Modules of keylag.commands, in the order that help lists them."""


class LazyGroup(click.Group):
    """Imports only the sub-command that runs; importing all takes a second."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the sub-command and turn its errors into messages and exit codes."""
        with handle_errors(debug=ctx.params["debug"]):
            return super().invoke(ctx)

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the names in the order that help lists them."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        """Return the sub-command of this name; None if there is none."""
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"keylag.commands.{name}").command
        return command


@click.command(
    "keylag",
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 failure, 2 invalid usage, 130 interrupted "
    "(Ctrl-C). docs/reference/exit-codes.md explains code 1 of each command.",
)
@click.option(
    "--debug",
    is_flag=True,
    envvar=DEBUG_VARIABLE,
    help="Print the traceback of an error.  [$KEYLAG_DEBUG]",
)
@click.version_option(package_name="keylag")
def main(*, debug: bool) -> None:
    """Measure where the time of Keystone's token calls goes.

    Start with `keylag demo`: it starts a Keystone, sends token requests, and
    prints a breakdown of their latency.
    """
