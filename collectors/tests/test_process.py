"""CPU time and garbage collections of a worker process."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from keylag_otel import instruments, process


@pytest.fixture
def collections(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Collections that take a second by the clock, however fast they are."""
    seconds = iter(range(0, 10**15, 10**9))
    monkeypatch.setattr(process, "perf_counter_ns", lambda: next(seconds))
    monkeypatch.setattr(process._GcTimes, "elapsed_ns", [0, 0, 0])
    was_enabled = gc.isenabled()
    gc.disable()
    process.start()
    yield
    process.stop()
    if was_enabled:
        gc.enable()


def times() -> list[float]:
    return [value for value, _ in process.gc_time()]


def test_collection_time_is_counted_by_generation(collections) -> None:
    gc.collect(2)
    gc.collect(0)
    gc.collect(0)

    assert times() == [2, 0, 1]
    assert [by[instruments.GENERATION] for _, by in process.gc_time()] == [0, 1, 2]


def test_collection_count_matches_the_gc_module(collections) -> None:
    before = [count for count, _ in process.gc_collections()]

    gc.collect(1)

    after = [count for count, _ in process.gc_collections()]
    assert [b - a for a, b in zip(before, after)] == [0, 1, 0]


def test_starting_twice_counts_once_and_stops_once(collections) -> None:
    process.start()
    gc.collect(0)
    process.stop()
    process.stop()
    gc.collect(0)

    assert times() == [1, 0, 0]


def test_processor_time_grows_with_work() -> None:
    before = sum(seconds for seconds, _ in process.cpu_time())

    while sum(seconds for seconds, _ in process.cpu_time()) == before:
        sum(range(10_000))

    modes = [by[instruments.CPU_MODE] for _, by in process.cpu_time()]
    assert modes == ["user", "system"]


def test_every_instrument_has_a_callback() -> None:
    assert set(process.CALLBACKS) == set(instruments.PROCESS)
