"""What `keylag diagnose` names in a laboratory."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keylag.lab.iproute import LabError

Finding = dict[str, Any]
"""One of `findings` in the document of `keylag diagnose --output json`."""


def named_causes(stack: Path, seconds: int, keylag: Sequence[str]) -> list[Finding]:
    """Return the causes of the last seconds of a stack, the likeliest first.

    `keylag` is the command, where the stack's servers can be reached.  Raises LabError.
    """
    options = (f"--state={stack}", f"--since={seconds}s", "--output=json")
    command = [*keylag, "diagnose", *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found: list[Finding] = json.loads(ended.stdout)["findings"]
    except ValueError as error:
        message = f"The calls could not be diagnosed:\n{ended.stderr}"
        raise LabError(message) from error
    return found
