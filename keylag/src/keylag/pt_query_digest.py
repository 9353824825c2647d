"""Runs pt-query-digest on a time window of a slow log.

keylag-exporter selects the events of the window by their `SET timestamp`.
pt-query-digest itself uses the lines `# Time:`, in local time, and skips events
without one; servers write that line at most once a second.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

from keylag.errors import KeylagError
from keylag.tools import find_program

PROGRAM: Final = "pt-query-digest"
INSTALL_ADVICE: Final = "Install Debian's package: `apt install percona-toolkit`."
OUTPUT_FORMATS: Final = {"table": "report", "json": "json"}
"""Values of `--output`, and pt-query-digest's names for them."""
EMPTY_REPORTS: Final = ("", "# No events processed.")
"""What pt-query-digest prints for an empty log, in each format."""


class DigestError(KeylagError):
    """A report could not be made."""


def create_report(log: str, since: float | None, until: float | None, form: str) -> str:
    """Return the report on the events of a log from `since` until before `until`.

    Times are Unix seconds.  `-` is standard input.  Raises ToolError if
    pt-query-digest is not installed, and DigestError for a window without events or
    an unreadable log.
    """
    # Without a file name it prints a note about standard input into the report.
    command = (
        find_program(PROGRAM, INSTALL_ADVICE),
        "--no-version-check",
        "/dev/stdin",
    )
    with subprocess.Popen(
        _window_command(log, since, until),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as window:
        digest = subprocess.run(
            [*command, f"--output={OUTPUT_FORMATS[form]}"],
            stdin=window.stdout,
            capture_output=True,
            check=False,
        )
        if digest.returncode:
            raise DigestError(_error_text(PROGRAM, digest.stderr))
        _, errors = window.communicate()
    if window.returncode:
        raise DigestError(_error_text(log, errors))
    text = digest.stdout.decode("utf-8", "replace")
    if text.strip() in EMPTY_REPORTS:
        message = f"{log} has no events in this window."
        raise DigestError(message)
    return text


def _window_command(log: str, since: float | None, until: float | None) -> list[str]:
    exporter = Path(sys.executable).with_name("keylag-exporter")
    bounds = {"since": since, "until": until}
    return [
        *(str(exporter), "slow-log", f"--once={log}", "--output=log"),
        *(f"--{name}={time}" for name, time in bounds.items() if time is not None),
    ]


def _error_text(source: str, stderr: bytes) -> str:
    text = stderr.decode("utf-8", "replace").strip().removeprefix("Error: ")
    return f"{source}: {text}"
