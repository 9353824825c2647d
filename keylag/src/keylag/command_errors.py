"""Turns the errors of a command into a message with advice, and an exit code."""

import errno
import os
import signal
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import click

from keylag.errors import KeylagError, WrongUsageError

DEBUG_VARIABLE: Final = "KEYLAG_DEBUG"
"""Environment variable that enables tracebacks."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C or SIGTERM."""

_DISK_FULL_ADVICE: Final = "Free some space there, or choose another location."
_PERMISSION_ADVICE: Final = "Choose a location where you have write permission."
_ERRNO_ADVICE: Final[Mapping[int | None, str]] = {
    errno.ENOSPC: _DISK_FULL_ADVICE,
    errno.EDQUOT: _DISK_FULL_ADVICE,
    errno.EROFS: _PERMISSION_ADVICE,
    errno.EACCES: _PERMISSION_ADVICE,
    errno.EPERM: _PERMISSION_ADVICE,
    errno.ENOTDIR: "Choose a path whose parents are folders.",
    errno.EISDIR: "Choose the path of a file, not of a folder.",
    errno.EEXIST: "Choose a folder, or a path that does not exist yet.",
    errno.ENOENT: "Check the path.",
    errno.ENAMETOOLONG: "Choose a shorter path.",
}
"""What to do about an error of the operating system."""


@contextmanager
def handle_errors(*, debug: bool = DEBUG_VARIABLE in os.environ) -> Iterator[None]:
    """Turn exceptions into the click exceptions that end a command.

    `debug` prints the traceback first.  docs/reference/exit-codes.md lists the codes.
    """
    # SIGTERM and a closed terminal clean up as Ctrl-C does; nohup ignores the latter.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
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
        is_usage = isinstance(error, WrongUsageError)
        kind = click.UsageError if is_usage else click.ClickException
        raise kind(_message(error)) from error


def _message(error: Exception) -> str:
    if isinstance(error, KeylagError):
        return str(error)
    if isinstance(error, OSError):
        path = f": {os.fsdecode(error.filename)}" if error.filename else ""
        reason = f"{error.strerror or error}{path}."
        return f"{reason} {_ERRNO_ADVICE.get(error.errno, '')}".rstrip()
    return (
        f"{type(error).__name__}: {error}\nThis is a defect of keylag. Run the command "
        "again as `keylag --debug ...` and report its output."
    )
