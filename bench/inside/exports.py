"""Periodic exports of metrics, timed by the work of the process.

OpenTelemetry's reader exports every so many seconds of the day.  An arm works only
while no other arm does, so its exports are due every so many seconds of its own work:
that is what a worker sees that is always busy.
"""

import os
import time
from random import Random
from threading import Thread
from typing import Any

SECONDS = "KEYLAG_BENCH_EXPORT_SECONDS"
"""The variable with the seconds of work between exports; without it there are none."""


class PeriodicExports:
    """Exports in a thread beside the requests, as OpenTelemetry's reader does.

    The first export of a process, which imports and connects, is made at once and
    does not count.  When the next one is due is drawn evenly from the first interval,
    so that work of any length contains its share of exports on average.
    """

    def __init__(self) -> None:
        self._interval = float(os.environ.get(SECONDS, "inf"))
        self._left = self._interval
        self._number = 0
        self._cpu_seconds = 0.0
        if SECONDS in os.environ:
            self._left *= Random(os.environ["PYTHONHASHSEED"]).random()
            self._export()
        self.taken()

    def begin(self) -> Thread | None:
        """Start an export if one is due; return its thread, for the end of the turn."""
        if self._left > 0:
            return None
        self._left += self._interval
        thread = Thread(target=self._export, name="periodic-export")
        thread.start()
        return thread

    def worked(self, seconds: float) -> None:
        """Come nearer to the next export by so many seconds of work."""
        self._left -= seconds

    def taken(self) -> dict[str, float]:
        """Return the number of exports and their CPU time since the last question."""
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
    """Return all readers of the SDK, whoever made them."""
    from opentelemetry.sdk.metrics import MeterProvider

    readers = list(MeterProvider._all_metric_readers)  # noqa: SLF001 - no other way
    if not readers:
        message = "no metrics are exported, so an interval of exports means nothing"
        raise LookupError(message)
    return readers
