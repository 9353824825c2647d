"""The end of a worker: a last export, which may not hold it up.

A worker that is told to end has to be gone within a second, whatever its
endpoint does; and what a short-lived worker measured should still arrive.
"""

from __future__ import annotations

import atexit
import logging
import os
from threading import Event, Thread
from typing import Any

LOG = logging.getLogger("keylag_otel")


class Farewell:
    """Closes a provider when its process ends, and waits for that only so long."""

    def __init__(self, provider: Any, seconds: float) -> None:
        self._provider = provider
        self._seconds = seconds
        self._pid = os.getpid()
        self._asked = Event()
        self._done = Event()
        # It waits from now on, since Python 3.12 starts no thread once it is
        # ending; and it is a daemon, so that an endpoint that hangs is left.
        Thread(target=self._close, name="keylag-farewell", daemon=True).start()
        atexit.register(self)

    def __call__(self) -> None:
        """Ask for the last export, and wait for it no longer than agreed."""
        if os.getpid() != self._pid:
            return  # a child of the worker ends, not the worker
        self._asked.set()
        if not self._done.wait(self._seconds):
            LOG.info("keylag gave up its last export: the endpoint did not answer")

    def _close(self) -> None:
        self._asked.wait()
        try:
            self._provider.shutdown(timeout_millis=self._seconds * 1000)
        except Exception:
            LOG.debug("keylag could not close its exporter", exc_info=True)
        finally:
            self._done.set()
