"""Error messages and exit codes of the command."""

from __future__ import annotations

import os
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from keylag_exporters.settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 plus the signal number."""


@contextmanager
def exit_with_message(*, debug: bool) -> Iterator[None]:
    """Report exceptions as messages; print the traceback only with `debug`.

    docs/reference/exit-codes.md lists the exit codes.
    """
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
    except Exception as error:
        if debug:
            traceback.print_exc()
        if isinstance(error, SettingsError):
            raise click.UsageError(str(error)) from error
        raise click.ClickException(_message(error)) from error


def _message(error: Exception) -> str:
    if isinstance(error, OSError):
        place = f": {os.fsdecode(error.filename)}" if error.filename else ""
        return f"{error.strerror or error}{place}"
    return (
        f"{type(error).__name__}: {error}\nThis is a bug in keylag-exporter. Run "
        "`keylag-exporter --debug ...` and report its output."
    )
