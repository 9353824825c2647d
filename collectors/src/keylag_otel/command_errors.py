"""How a command ends: with a message, and an exit code of docs/reference/exit-codes.md.

For commands of this and of Keylag's other packages; nothing here runs in a host.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

INTERRUPTED = 130
CODES = "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted by Ctrl-C."
DEBUG_VARIABLE = "KEYLAG_DEBUG"


def ended(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; report what it raises, briefly."""
    try:
        code = command()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has enough; Python would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exc()
        print(f"Error: {_message(error)}", file=sys.stderr)  # noqa: T201 - a command's
        return 1
    return code


def _message(error: Exception) -> str:
    if isinstance(error, OSError):
        place = f": {os.fsdecode(error.filename)}" if error.filename else ""
        return f"{error.strerror or error}{place}."
    return (
        f"{type(error).__name__}: {error}\n"
        f"This is a defect; {DEBUG_VARIABLE}=1 in the environment shows where."
    )
