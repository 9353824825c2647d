"""Conversion from the performance counter to the wall clock."""

from __future__ import annotations

from keylag_otel.traces import wall_clock


def test_interrupted_reading_is_ignored(monkeypatch) -> None:
    """The epoch is 1000; in one reading, 400 ns pass between the clocks."""
    stopwatch = iter([10, 412, 500, 502, 600, 604])
    time = iter([1411, 1501, 1602])
    monkeypatch.setattr(wall_clock, "perf_counter_ns", lambda: next(stopwatch))
    monkeypatch.setattr(wall_clock, "time_ns", lambda: next(time))

    assert wall_clock.perf_counter_epoch_ns() == 1000
