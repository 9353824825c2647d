"""The `keylag` command: a table of its sub-commands and nothing else."""

import click

from keylag.commands import demo, down, load, setup, status, up

COMMANDS: tuple[click.Command, ...] = (
    setup.command,
    up.command,
    status.command,
    load.command,
    demo.command,
    down.command,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Where did the time of this Keystone token call go?

    Start with `keylag demo`: it starts a Keystone of its own, sends it real
    load and prints where the time of each token call went.
    """


for _command in COMMANDS:
    main.add_command(_command)
