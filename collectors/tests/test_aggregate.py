"""The aggregate, native and pure."""

from __future__ import annotations

from typing import Any

import pytest

BOUNDS = (10, 20)


@pytest.fixture
def aggregate(hot_path) -> Any:
    return hot_path.Aggregate(BOUNDS, 2)


@pytest.fixture
def request_of(hot_path, time_source) -> Any:
    """Return a request that has spent so many nanoseconds in cells."""

    def make(spent: dict[int, int], counts: tuple[int, int] = (0, 0)) -> Any:
        timer = hot_path.RequestTimer("GET", 0, 2)
        for cell, nanoseconds in spent.items():
            timer.switch(cell)
            time_source.passes(nanoseconds)
        timer.accumulate()
        for index, count in enumerate(counts):
            for _ in range(count):
                timer.count(index)
        return timer

    return make


def test_new_object_is_empty(aggregate) -> None:
    assert (aggregate.self_times(), aggregate.counts, aggregate.buckets) == (
        {},
        [0, 0],
        [0, 0, 0],
    )
    assert (aggregate.min_ns, aggregate.max_ns, aggregate.wall_ns) == (0, 0, 0)


def test_requests_add_up(aggregate, request_of) -> None:
    aggregate.add(request_of({1: 4, 255: 3}, (1, 5)))
    aggregate.add(request_of({1: 30}, (2, 0)))

    assert aggregate.self_times() == {1: 34, 255: 3}
    assert aggregate.counts == [3, 5]
    assert (aggregate.min_ns, aggregate.max_ns, aggregate.wall_ns) == (7, 30, 37)


def test_bucket_bounds_are_inclusive(aggregate, request_of) -> None:
    for nanoseconds in (0, 10, 11, 20, 21, 10**12):
        aggregate.add(request_of({1: nanoseconds}))

    assert aggregate.buckets == [2, 2, 2]


def test_copy_is_independent(aggregate, request_of) -> None:
    aggregate.add(request_of({1: 4}, (1, 0)))
    copied = aggregate.copy()
    aggregate.add(request_of({1: 4}, (1, 0)))

    assert (copied.self_times(), copied.counts) == ({1: 4}, [1, 0])
    assert (aggregate.self_times(), aggregate.counts) == ({1: 8}, [2, 0])
    assert (copied.buckets, aggregate.buckets) == ([1, 0, 0], [2, 0, 0])


def test_add_requires_a_timer(aggregate) -> None:
    with pytest.raises((AttributeError, TypeError)):
        aggregate.add("no request")

    assert aggregate.buckets == [0, 0, 0]
