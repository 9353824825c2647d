"""Flush at exit: the last export of a worker, with a time limit.

A stopped worker has to end within a second even if its endpoint hangs, and the data
of a short-lived worker should still arrive.
"""

from __future__ import annotations

import atexit
import logging
import os
from threading import Event, Thread
from time import monotonic
from typing import Callable, ClassVar

LOG = logging.getLogger("keylag_otel")


class FlushAtExit:
    """Shuts a provider down at exit, and waits for that at most `seconds`.

    All instances of a process flush at the same time, so several wait no longer than
    one.
    """

    _instances: ClassVar[list[FlushAtExit]] = []

    def __init__(self, close: Callable[[], object], seconds: float) -> None:
        self._shut_down = close
        self._seconds = seconds
        self._deadline = 0.0
        self._pid = os.getpid()
        self._requested = Event()
        self._done = Event()
        # The thread starts now, because Python 3.12 starts no threads at exit; it is a
        # daemon, so that the interpreter does not wait for an endpoint that hangs.
        Thread(target=self._run, name="keylag-flush-at-exit", daemon=True).start()
        self._instances.append(self)
        atexit.register(self)

    def __call__(self) -> None:
        """Request all last exports; wait for this one until its deadline."""
        if os.getpid() != self._pid:
            return  # a forked child of the worker exits
        for each in self._instances:
            each.request()
        if not self._done.wait(max(0.0, self._deadline - monotonic())):
            LOG.info(
                "keylag gave up its last export: the endpoint did not respond in time"
            )

    @classmethod
    def close_all(cls) -> None:
        """Flush and shut down all providers of this process now."""
        instances, cls._instances[:] = list(cls._instances), []
        for each in instances:
            each.request()
        for each in instances:
            each()
            atexit.unregister(each)

    def request(self) -> None:
        """Let the thread shut the provider down, and set the deadline."""
        if not self._requested.is_set():
            self._deadline = monotonic() + self._seconds
            self._requested.set()

    def _run(self) -> None:
        self._requested.wait()
        try:
            self._shut_down()
        except Exception:
            LOG.debug("keylag could not shut its exporter down", exc_info=True)
        finally:
            self._done.set()
