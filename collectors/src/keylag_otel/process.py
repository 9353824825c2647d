"""What a worker's process spends, whatever it works on: processor and garbage.

Read when metrics are exported.  Only the time of collections has to be taken
as it passes: two calls of a function around each of them.
"""

from __future__ import annotations

import gc
import resource
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any, Callable

from keylag_otel import instruments

Readings = Iterator["tuple[float, dict[str, Any]]"]
_GENERATIONS = range(3)


class _Collections:
    """Nanoseconds that collections took, by generation; one runs at a time."""

    began = 0
    spent = [0 for _ in _GENERATIONS]  # noqa: RUF012 - of the process, as the collector


def _around(phase: str, info: dict[str, int]) -> None:
    """Take the time; Python calls this before and after each collection."""
    if phase == "start":
        _Collections.began = perf_counter_ns()
    else:
        _Collections.spent[info["generation"]] += perf_counter_ns() - _Collections.began


def watch() -> None:
    """Take the time of collections from now on."""
    if _around not in gc.callbacks:
        gc.callbacks.append(_around)


def unwatch() -> None:
    """Leave the collector alone."""
    if _around in gc.callbacks:
        gc.callbacks.remove(_around)


def cpu_time() -> Readings:
    """Yield the processor's seconds in the program and in the kernel for it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield used.ru_utime, {instruments.CPU_MODE: "user"}
    yield used.ru_stime, {instruments.CPU_MODE: "system"}


def gc_collections() -> Readings:
    """Yield how often each generation was collected."""
    for generation, counted in enumerate(gc.get_stats()):
        yield counted["collections"], {instruments.GENERATION: generation}


def gc_time() -> Readings:
    """Yield the seconds that collecting each generation took."""
    for generation, nanoseconds in enumerate(_Collections.spent):
        yield nanoseconds / 1e9, {instruments.GENERATION: generation}


#: By the name of the instrument in ``instruments.PROCESS``.
READ: dict[str, Callable[[], Readings]] = {
    "cpu_time": cpu_time,
    "gc_collections": gc_collections,
    "gc_time": gc_time,
}
