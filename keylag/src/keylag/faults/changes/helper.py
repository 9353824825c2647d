"""A process of a fault: a relay, a client, a busy loop."""

import json
import secrets
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from keylag import processes
from keylag.faults.helpers import READY
from keylag.faults.model import FaultError
from keylag.tools.tool import tail

if TYPE_CHECKING:
    from keylag.faults.site import Site

READY_SECONDS: Final = 20.0
POLL_SECONDS: Final = 0.02
GRACE_SECONDS: Final = 3.0


@dataclass(frozen=True)
class Helper:
    """A detached process that runs until the fault is taken back.

    The stack's folder and `name` are in its environment, so it is found after a crash
    too.  It ends itself when its name is not in the stack's journal any more.
    """

    program: str
    """A key of helpers.programs.PROGRAMS."""
    parameters: Mapping[str, Any]
    name: str = field(default_factory=lambda: f"fault-{secrets.token_hex(4)}")

    def apply(self, site: "Site") -> None:
        """Start it and wait until it is ready; raises FaultError."""
        log = site.folder / "logs" / f"{self.name}.log"
        process = processes.start_server(
            [
                *(sys.executable, "-m", "keylag.faults.helpers.programs"),
                *(self.program, json.dumps(dict(self.parameters))),
            ],
            site.environment(self.name),
            log,
        )
        deadline = time.monotonic() + READY_SECONDS
        while READY not in tail(log):
            if process.poll() is not None or time.monotonic() > deadline:
                message = (
                    f"The {self.program} of the fault did not start. The end of "
                    f"{log}:\n{tail(log)}"
                )
                raise FaultError(message)
            time.sleep(POLL_SECONDS)

    def undo(self, site: "Site") -> None:
        """End it, if it runs."""
        processes.stop_processes(site.processes(self.name), GRACE_SECONDS)
        (site.folder / "logs" / f"{self.name}.log").unlink(missing_ok=True)
