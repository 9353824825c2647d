"""CPU time and garbage collection of the worker process, read at each export.

Only the time of collections is measured as it passes, by a callback before and after
each of them.
"""

from __future__ import annotations

import gc
import resource
from time import perf_counter_ns
from typing import Callable

from keylag_otel import instruments
from keylag_otel.cpu_wait import cpu_wait
from keylag_otel.gauges import Observations
from keylag_otel.model import NS_PER_SECOND

_GENERATIONS = range(3)


class _GcTimes:
    """Nanoseconds of garbage collections by generation; one runs at a time."""

    started_at = 0
    elapsed_ns = [0 for _ in _GENERATIONS]  # noqa: RUF012 - state of the process


def _on_collection(phase: str, info: dict[str, int]) -> None:
    if phase == "start":
        _GcTimes.started_at = perf_counter_ns()
    else:
        _GcTimes.elapsed_ns[info["generation"]] += (
            perf_counter_ns() - _GcTimes.started_at
        )


def start() -> None:
    """Start timing garbage collections."""
    if _on_collection not in gc.callbacks:
        gc.callbacks.append(_on_collection)


def stop() -> None:
    """Stop timing garbage collections."""
    if _on_collection in gc.callbacks:
        gc.callbacks.remove(_on_collection)


def cpu_time() -> Observations:
    """Yield the seconds of CPU time in user and system mode."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield used.ru_utime, {instruments.CPU_MODE: "user"}
    yield used.ru_stime, {instruments.CPU_MODE: "system"}


def gc_collections() -> Observations:
    """Yield the number of collections of each generation."""
    for generation, counted in enumerate(gc.get_stats()):
        yield counted["collections"], {instruments.GENERATION: generation}


def gc_time() -> Observations:
    """Yield the seconds of collections of each generation."""
    for generation, nanoseconds in enumerate(_GcTimes.elapsed_ns):
        yield nanoseconds / NS_PER_SECOND, {instruments.GENERATION: generation}


#: By the keys of ``instruments.PROCESS``.
CALLBACKS: dict[str, Callable[[], Observations]] = {
    "cpu_time": cpu_time,
    "cpu_wait": cpu_wait,
    "gc_collections": gc_collections,
    "gc_time": gc_time,
}
