"""`keylag down`: stop the stack, whatever became of the command that started it."""

from pathlib import Path

import click

from keylag.state import state_folder
from keylag.teardown import stop_below, stop_stack


@click.command("down")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also the stacks of tests that are running.",
)
@click.option(
    "--state",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Only the stack of this folder.  [default: those of `up` and `demo --keep`]",
)
def command(folder: Path | None, *, everything: bool) -> None:
    """Stop the stack; its data and logs stay.

    Finds the processes by a mark in their environment, so it also works after
    a crash, and never stops a process that is not the stack's. To start afresh,
    delete the stack's folder.

    \b
    Example:
      keylag down
    """  # noqa: D301 - click reads a backspace
    stopped = (
        {folder: stop_stack(folder)}
        if folder
        else stop_below(state_folder(), deep=everything)
    )
    lines = [
        f"Stopped {', '.join(names)} ({stack})."
        for stack, names in stopped.items()
        if names
    ]
    click.echo("\n".join(lines) or "Nothing is running.")
