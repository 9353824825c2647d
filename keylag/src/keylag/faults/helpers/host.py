"""What a helper knows: its stack, its name, and whether it is still wanted."""

import itertools
import os
import signal
import sys
import time
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from threading import Thread
from typing import Final

from keylag.faults.helpers import READY
from keylag.faults.journal import FILE
from keylag.processes import SERVICE_VARIABLE, STACK_VARIABLE

POLL_SECONDS: Final = 1.0
GRACE_SECONDS: Final = 3.0
"""How long a helper may take to end."""


class Host:
    """The stack of a helper, from the variables that identify its process."""

    def __init__(self) -> None:
        self.folder = Path(os.environ[STACK_VARIABLE])
        self.name = os.environ[SERVICE_VARIABLE]

    def is_wanted(self) -> bool:
        """Return whether the stack's journal has this helper."""
        try:
            return self.name in (self.folder / FILE).read_text()
        except OSError:
            return False

    def turns(self) -> Iterator[int]:
        """Count turns as long as the stack's journal has this helper."""
        return takewhile(lambda _: self.is_wanted(), itertools.count())

    def paced_turns(self, per_second: float) -> Iterator[int]:
        """Count turns at a rate; the helper is ready after the first one."""
        due = time.monotonic()
        for number in self.turns():
            yield number
            if not number:
                ready()
            due += 1 / per_second
            time.sleep(max(0.0, due - time.monotonic()))

    def end_when_unwanted(self) -> None:
        """End the process as soon as the journal does not have this helper."""
        Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while self.is_wanted():
            time.sleep(POLL_SECONDS)
        # The main thread ends as after `keylag fault stop`.
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os._exit(0)


def ready() -> None:
    """Tell the command that started the helper that it does its work."""
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
