"""Shows that a long step goes on: live on a terminal, elsewhere by a line at times."""

import time
from contextlib import AbstractContextManager
from threading import Event, Thread
from typing import Final, Self

from rich.console import Console
from rich.status import Status

INTERVAL_SECONDS: Final = 15.0
"""Time between two lines of one step."""


class Heartbeat:
    """Prints what a step does and its elapsed time, until the step ends."""

    def __init__(self, console: Console, text: str) -> None:
        self._console = console
        self._text = text
        self._ended = Event()
        self._thread = Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def update(self, text: str) -> None:
        """Set what the step does now; the elapsed time goes on."""
        self._text = text

    def _beat(self) -> None:
        started = time.monotonic()
        while not self._ended.wait(INTERVAL_SECONDS):
            seconds = time.monotonic() - started
            line = f"{self._text}: {seconds:.0f} s so far"
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)


def show_step(
    console: Console, text: str
) -> AbstractContextManager[Status | Heartbeat]:
    """Return what shows a step: a status on a terminal, elsewhere a heartbeat."""
    return console.status(text) if console.is_terminal else Heartbeat(console, text)
