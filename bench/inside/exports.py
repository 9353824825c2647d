"""Periodic exports of metrics, timed by the work of the process.

OpenTelemetry's reader exports at intervals of wall time.  An arm works only while the
others are idle, so its intervals are of its own work, as of a worker that is always
busy.
"""

import os
import time
from random import Random
from threading import Thread
from typing import Any

SECONDS = "KEYLAG_BENCH_EXPORT_SECONDS"
"""The variable with the seconds of work between exports; unset for no exports."""


class PeriodicExports:
    """Exports in a thread beside the requests, as OpenTelemetry's reader does.

    The first export, which imports and connects, runs at once and does not count.  The
    time of the second is uniform in the first interval, so that work of any length
    contains its share of exports on average.
    """

    def __init__(self) -> None:
        self._interval = float(os.environ.get(SECONDS, "inf"))
        self._left = self._interval
        self._number = 0
        self._cpu_seconds = 0.0
        if SECONDS in os.environ:
            self._left *= Random(os.environ["PYTHONHASHSEED"]).random()
            self._export()
        self.take_counts()

    def begin(self) -> Thread | None:
        """Start an export if one is due; return its thread to join after the round."""
        if self._left > 0:
            return None
        self._left += self._interval
        thread = Thread(target=self._export, name="periodic-export")
        thread.start()
        return thread

    def add_work(self, seconds: float) -> None:
        """Subtract seconds of work from the time to the next export."""
        self._left -= seconds

    def take_counts(self) -> dict[str, float]:
        """Return the number of exports and their CPU time since the last call."""
        found = {"exports": self._number, "export_cpu_seconds": self._cpu_seconds}
        self._number, self._cpu_seconds = 0, 0.0
        return found

    def _export(self) -> None:
        started = time.thread_time()
        for reader in _readers():
            reader.collect()
        self._number += 1
        self._cpu_seconds += time.thread_time() - started


def _readers() -> list[Any]:
    """Return all readers of the SDK."""
    from opentelemetry.sdk.metrics import MeterProvider

    readers = list(MeterProvider._all_metric_readers)  # noqa: SLF001 - no other way
    if not readers:
        message = f"{SECONDS} is set, but no metrics are exported"
        raise LookupError(message)
    return readers
