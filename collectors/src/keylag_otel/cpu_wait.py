"""The time that the threads of this process were ready to run and waited for a CPU.

Linux counts it for each thread, and forgets it when the thread ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from keylag_otel.model import NS_PER_SECOND

_TASKS = Path("/proc/self/task")

#: What a kernel without these statistics reports, and one with them of a new thread.
_NOT_COUNTED = ["0", "0", "0"]


def _waited_ns() -> Iterator[tuple[str, int]]:
    """Yield each thread with the nanoseconds that it has waited."""
    with suppress(OSError):
        for thread in _TASKS.iterdir():
            with suppress(OSError):  # it may have ended
                ran_waited_slices = (thread / "schedstat").read_text().split()
                if ran_waited_slices != _NOT_COUNTED:
                    yield thread.name, int(ran_waited_slices[1])


class _ThreadWaits:
    """The sum over the threads of a process, those that have ended included.

    What a thread waits after the last export that saw it is lost.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: dict[str, int] = {}
        self._ended_ns = 0

    def seconds(self) -> float | None:
        """Return the sum, or None if the kernel does not count."""
        with self._lock:
            before, self._running = self._running, dict(_waited_ns())
            # A lower number is that of a new thread with the id of one that ended.
            self._ended_ns += sum(
                waited
                for thread, waited in before.items()
                if self._running.get(thread, -1) < waited
            )
            if not self._running:
                return None
            return (self._ended_ns + sum(self._running.values())) / NS_PER_SECOND


#: By process id: a forked child has other threads, and waits of its own.
_waits: dict[int, _ThreadWaits] = {}


def cpu_wait() -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield the seconds that threads have waited for a CPU, if the kernel counts."""
    seconds = _waits.setdefault(os.getpid(), _ThreadWaits()).seconds()
    if seconds is not None:
        yield seconds, {}
