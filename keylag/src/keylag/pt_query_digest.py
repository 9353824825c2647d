"""Runs pt-query-digest on a time window of a slow log.

keylag-exporter selects the events of the window by their `SET timestamp`.
pt-query-digest itself uses the lines `# Time:`, in local time, and skips events
without one; servers write that line at most once a second. keylag-exporter also reads
these events and adds a readable statement to each query of the report.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final

from keylag.errors import KeylagError
from keylag.tools import find_program

PROGRAM: Final = "pt-query-digest"
INSTALL_ADVICE: Final = "Install Debian's package: `apt install percona-toolkit`."
OUTPUT_FORMATS: Final = {"table": "report", "json": "json"}
"""Values of `--output`, and pt-query-digest's names for them."""
EMPTY_REPORTS: Final = ("", "# No events processed.")
"""What pt-query-digest prints for an empty log, in each format."""
_QUERY_HEAD: Final = re.compile(r"^# Query \d+: .*\bID (0x[0-9A-F]+)\b.*", re.MULTILINE)


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
    bounds = {"since": since, "until": until}
    options = [f"--{name}={at}" for name, at in bounds.items() if at is not None]
    with (
        _read_once(log, "--output=log", *options, stderr=PIPE) as window,
        _read_once("-", "--output=json", stdin=PIPE, stderr=DEVNULL) as classes,
        _copy(window, classes) as events,
    ):
        digest = subprocess.run(
            [*command, f"--output={OUTPUT_FORMATS[form]}"],
            stdin=events.stdout,
            capture_output=True,
            check=False,
        )
        if digest.returncode:
            raise DigestError(_error_text(PROGRAM, digest.stderr))
        _, errors = window.communicate()
        found = classes.stdout.read()  # type: ignore[union-attr]
    if window.returncode:
        raise DigestError(_error_text(log, errors))
    text = digest.stdout.decode("utf-8", "replace")
    if text.strip() in EMPTY_REPORTS:
        message = f"{log} has no events in this window."
        raise DigestError(message)
    return text if form == "json" else _add_statements(text, found)


def _read_once(
    log: str, *options: str, stdin: int | None = None, stderr: int
) -> subprocess.Popen[bytes]:
    exporter = Path(sys.executable).with_name("keylag-exporter")
    command = [str(exporter), "slow-log", f"--once={log}", *options]
    return subprocess.Popen(command, stdin=stdin, stdout=PIPE, stderr=stderr)


def _copy(
    source: subprocess.Popen[bytes], target: subprocess.Popen[bytes]
) -> subprocess.Popen[bytes]:
    """Write the output of a process to another one, and to a pipe."""
    with target.stdin as pipe:  # type: ignore[union-attr]
        return subprocess.Popen(
            ["tee", f"/dev/fd/{pipe.fileno()}"],
            stdin=source.stdout,
            stdout=PIPE,
            pass_fds=[pipe.fileno()],
        )


def _add_statements(report: str, classes: bytes) -> str:
    """Add a readable statement to the head of each query."""
    statements = {one["id"]: one["statement"] for one in json.loads(classes)["classes"]}

    def add(head: re.Match[str]) -> str:
        found = statements.get(head[1])
        return f"{head[0]}\n# Statement: {found}" if found else head[0]

    return _QUERY_HEAD.sub(add, report)


def _error_text(source: str, stderr: bytes) -> str:
    text = stderr.decode("utf-8", "replace").strip().removeprefix("Error: ")
    return f"{source}: {text}"
