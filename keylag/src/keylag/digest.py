"""pt-query-digest's report on a window of a slow log.

The window is cut by our own reader.  pt-query-digest goes by the lines `# Time:`, in
the zone of the machine it runs on, and drops what has none; servers leave that line
out within a second.  `SET timestamp` stands at every event.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

from keylag.errors import KeylagError
from keylag.tools import find_program

PROGRAM: Final = "pt-query-digest"
ADVICE: Final = (
    "It is in Debian's package percona-toolkit: `apt install percona-toolkit`."
)
FORMS: Final = {"table": "report", "json": "json"}
"""What `--output` may be, and the name that pt-query-digest has for it."""
NOTHING: Final = ("", "# No events processed.")
"""What it prints, in either form, where there was nothing to read."""


class DigestError(KeylagError):
    """There is no report; the text says why."""


def report(log: str, since: float | None, until: float | None, form: str) -> str:
    """Return the report on the events of a log (`-`: standard input) in a window.

    Times are Unix seconds, `until` is not part of the window.  Raises DigestError, and
    ToolError if pt-query-digest is not installed.
    """
    # Without a name it would say that it reads standard input, amid the report.
    digest = (find_program(PROGRAM, ADVICE), "--no-version-check", "/dev/stdin")
    with subprocess.Popen(
        _cut(log, since, until), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as cut:
        made = subprocess.run(
            [*digest, f"--output={FORMS[form]}"],
            stdin=cut.stdout,
            capture_output=True,
            check=False,
        )
        if made.returncode:
            raise DigestError(_said(PROGRAM, made.stderr))
        _, complaint = cut.communicate()
    if cut.returncode:
        raise DigestError(_said(log, complaint))
    text = made.stdout.decode("utf-8", "replace")
    if text.strip() in NOTHING:
        message = f"{log} has no events in this window."
        raise DigestError(message)
    return text


def _cut(log: str, since: float | None, until: float | None) -> list[str]:
    """Return the command that prints the events of a window as a log again."""
    exporter = Path(sys.executable).with_name("keylag-exporter")
    window = {"since": since, "until": until}
    return [
        *(str(exporter), "slow-log", f"--once={log}", "--output=log"),
        *(f"--{name}={time}" for name, time in window.items() if time is not None),
    ]


def _said(who: str, complaint: bytes) -> str:
    text = complaint.decode("utf-8", "replace").strip().removeprefix("Error: ")
    return f"{who}: {text}"
