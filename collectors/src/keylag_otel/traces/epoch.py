"""Where two clocks meet: the one that spans are told in, and the stopwatch's."""

from __future__ import annotations

from time import perf_counter_ns, time_ns

_READINGS = 3


def epoch_ns() -> int:
    """Return when, since 1970, ``perf_counter_ns`` was 0, in nanoseconds.

    The processor may be taken away between the one clock and the other, which would
    move a request's spans; so of some readings it is the one that was quickest.
    """
    readings = []
    for _ in range(_READINGS):
        before, moment, after = perf_counter_ns(), time_ns(), perf_counter_ns()
        readings.append((after - before, moment - (before + after) // 2))
    return min(readings)[1]
