"""Run a command: error messages, and the exit codes of docs/reference/exit-codes.md.

For the commands of Keylag's packages; hosts never run this code.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

INTERRUPTED = 130
EXIT_CODES_HELP = (
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted by Ctrl-C."
)
DEBUG_VARIABLE = "KEYLAG_DEBUG"


def run_command(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; print what it raises in one line."""
    try:
        code = command()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe; keep Python from failing at its final flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exc()
        print(f"Error: {_error_message(error)}", file=sys.stderr)  # noqa: T201 - a command's
        return 1
    return code


def _error_message(error: Exception) -> str:
    if isinstance(error, OSError):
        path = f": {os.fsdecode(error.filename)}" if error.filename else ""
        return f"{error.strerror or error}{path}."
    return (
        f"{type(error).__name__}: {error}\n"
        f"This is a bug; set {DEBUG_VARIABLE}=1 to see the traceback."
    )
