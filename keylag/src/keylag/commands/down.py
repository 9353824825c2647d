"""`keylag down`: stops stacks."""

import sys
from pathlib import Path

import click

from keylag.errors import KeylagError
from keylag.faults.journal import FILE as JOURNAL
from keylag.faults.planting import take_back_before_stop
from keylag.stack_shutdown import stop_stack, stop_stacks_in
from keylag.state import state_folder


@click.command("down")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Stop the stacks of running tests and experiments too.",
)
@click.option(
    "--state",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Stop only the stack in this folder.  [default: the stacks of `keylag up` and "
    "`keylag demo --keep`]",
)
def command(folder: Path | None, *, everything: bool) -> None:
    """Stop the stack; data and logs stay.

    A variable in the environment of each process identifies the stack, so this works
    after a crash too, and stops only processes of the stack. To start with an empty
    database, delete the stack's folder.

    \b
    Example:
      keylag down
    """  # noqa: D301 - click reads a backspace
    # Faults are taken back while the database runs.
    stay = False
    for one in [folder] if folder else _folders_with_faults(recursive=everything):
        try:
            take_back_before_stop(one)
        except (KeylagError, OSError) as error:
            stay = True
            click.echo(
                f"Faults stay in {one}: {error} The next `keylag up --state {one}`"
                " takes them back.",
                err=True,
            )
    stopped = (
        {folder: stop_stack(folder)}
        if folder
        else stop_stacks_in(state_folder(), recursive=everything)
    )
    lines = [
        f"Stopped {', '.join(names)} ({stack})."
        for stack, names in stopped.items()
        if names
    ]
    click.echo("\n".join(lines) or "No stack is running.")
    if stay:
        sys.exit(1)


def _folders_with_faults(*, recursive: bool) -> list[Path]:
    pattern = f"**/{JOURNAL}" if recursive else f"*/{JOURNAL}"
    return [found.parent for found in state_folder().glob(pattern)]
