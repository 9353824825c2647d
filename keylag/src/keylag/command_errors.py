"""How a command ends: with a message that says what to do, and an exit code."""

import errno
import os
import signal
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import click

from keylag.errors import KeylagError, WrongUsageError

DEBUG: Final = "KEYLAG_DEBUG"
"""The variable that shows where an error comes from."""
INTERRUPTED: Final = 130
"""The exit code of a command that Ctrl-C or SIGTERM ended."""

_NO_ROOM: Final = "Make room there, or choose another place."
_NO_WRITING: Final = "Choose a place where you may write."
_ADVICE: Final[Mapping[int | None, str]] = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EROFS: _NO_WRITING,
    errno.EACCES: _NO_WRITING,
    errno.EPERM: _NO_WRITING,
    errno.ENOTDIR: "Choose a path whose folders are folders.",
    errno.EISDIR: "Choose the path of a file.",
    errno.EEXIST: "Choose a path that is a folder, or is not there yet.",
    errno.ENOENT: "Look whether the path is right.",
    errno.ENAMETOOLONG: "Choose a shorter path.",
}
"""What to do about an error of the system's."""


@contextmanager
def reported(*, debug: bool = DEBUG in os.environ) -> Iterator[None]:
    """End a command without a traceback, unless it is asked for.

    docs/reference/exit-codes.md lists the codes.
    """
    # Ended by another program is ended as by Ctrl-C: nothing is left half started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except Exception as error:
        if debug:
            traceback.print_exc()
        wrong = isinstance(error, WrongUsageError)
        kind = click.UsageError if wrong else click.ClickException
        raise kind(_message(error)) from error


def _message(error: Exception) -> str:
    if isinstance(error, KeylagError):
        return str(error)
    if isinstance(error, OSError):
        place = f": {os.fsdecode(error.filename)}" if error.filename else ""
        said = f"{error.strerror or error}{place}."
        return f"{said} {_ADVICE.get(error.errno, '')}".rstrip()
    return (
        f"{type(error).__name__}: {error}\nThis is a defect of keylag. Run the command "
        "again as `keylag --debug ...`, and report what it prints."
    )
