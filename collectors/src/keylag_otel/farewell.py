"""The end of a worker: a last export, which may not hold it up.

A worker that is told to end has to be gone within a second, whatever its
endpoint does; and what a short-lived worker measured should still arrive.
"""

from __future__ import annotations

import atexit
import logging
import os
from threading import Event, Thread
from time import monotonic
from typing import Callable, ClassVar

LOG = logging.getLogger("keylag_otel")


class Farewell:
    """Closes a provider when its process ends, and waits for that only so long.

    All of a process are asked at once, so that several wait no longer than one.
    """

    _together: ClassVar[list[Farewell]] = []

    def __init__(self, close: Callable[[], object], seconds: float) -> None:
        self._end = close
        self._seconds = seconds
        self._until = 0.0
        self._pid = os.getpid()
        self._asked = Event()
        self._done = Event()
        # It waits from now on, since Python 3.12 starts no thread once it is
        # ending; and it is a daemon, so that an endpoint that hangs is left.
        Thread(target=self._close, name="keylag-farewell", daemon=True).start()
        self._together.append(self)
        atexit.register(self)

    def __call__(self) -> None:
        """Ask for the last exports, and wait for this one no longer than agreed."""
        if os.getpid() != self._pid:
            return  # a child of the worker ends, not the worker
        for each in self._together:
            each.ask()
        if not self._done.wait(max(0.0, self._until - monotonic())):
            LOG.info("keylag gave up its last export: the endpoint did not answer")

    @classmethod
    def close_all(cls) -> None:
        """Close what is open in this process now, and not when it ends."""
        together, cls._together[:] = list(cls._together), []
        for each in together:
            each.ask()
        for each in together:
            each()
            atexit.unregister(each)

    def ask(self) -> None:
        """Let the thread close the provider."""
        if not self._asked.is_set():
            self._until = monotonic() + self._seconds
            self._asked.set()

    def _close(self) -> None:
        self._asked.wait()
        try:
            self._end()
        except Exception:
            LOG.debug("keylag could not close its exporter", exc_info=True)
        finally:
            self._done.set()
