"""Spans are told by a clock that the processor may be taken away beside."""

from __future__ import annotations

from keylag_otel.traces import epoch


def test_a_reading_that_was_interrupted_does_not_count(monkeypatch) -> None:
    """It is 1000 when the stopwatch is at 0; once 400 pass between the two."""
    stopwatch = iter([10, 412, 500, 502, 600, 604])
    time = iter([1411, 1501, 1602])
    monkeypatch.setattr(epoch, "perf_counter_ns", lambda: next(stopwatch))
    monkeypatch.setattr(epoch, "time_ns", lambda: next(time))

    assert epoch.epoch_ns() == 1000
