"""Conversion of the timer's clock to the wall clock of spans."""

from __future__ import annotations

from time import perf_counter_ns, time_ns

_READINGS = 3


def perf_counter_epoch_ns() -> int:
    """Return the Unix time in nanoseconds at which ``perf_counter_ns`` was 0.

    The scheduler may interrupt between reading both clocks, which would shift the
    spans; so this is the fastest of several readings.
    """
    readings = []
    for _ in range(_READINGS):
        before, moment, after = perf_counter_ns(), time_ns(), perf_counter_ns()
        readings.append((after - before, moment - (before + after) // 2))
    return min(readings)[1]
