"""What requests add up to, in Python and in C."""

from __future__ import annotations

from typing import Any

import pytest

BOUNDS = (10, 20)


@pytest.fixture
def totals(half) -> Any:
    return half.Totals(BOUNDS, 2)


@pytest.fixture
def request_of(half, half_time) -> Any:
    """Return a request that has spent so many nanoseconds in cells."""

    def make(spent: dict[int, int], counts: tuple[int, int] = (0, 0)) -> Any:
        clock = half.Clock("GET", 0, 2)
        for cell, nanoseconds in spent.items():
            clock.turn(cell)
            half_time.passes(nanoseconds)
        clock.book()
        for index, count in enumerate(counts):
            for _ in range(count):
                clock.count(index)
        return clock

    return make


def test_before_any_request_there_is_nothing(totals) -> None:
    assert (totals.spent(), totals.counts, totals.buckets) == ({}, [0, 0], [0, 0, 0])
    assert (totals.shortest, totals.longest, totals.wall_ns) == (0, 0, 0)


def test_requests_add_up(totals, request_of) -> None:
    totals.add(request_of({1: 4, 255: 3}, (1, 5)))
    totals.add(request_of({1: 30}, (2, 0)))

    assert totals.spent() == {1: 34, 255: 3}
    assert totals.counts == [3, 5]
    assert (totals.shortest, totals.longest, totals.wall_ns) == (7, 30, 37)


def test_a_bucket_has_what_took_no_longer_than_its_bound(totals, request_of) -> None:
    for nanoseconds in (0, 10, 11, 20, 21, 10**12):
        totals.add(request_of({1: nanoseconds}))

    assert totals.buckets == [2, 2, 2]


def test_a_copy_stays_as_it_is(totals, request_of) -> None:
    totals.add(request_of({1: 4}, (1, 0)))
    copied = totals.copy()
    totals.add(request_of({1: 4}, (1, 0)))

    assert (copied.spent(), copied.counts) == ({1: 4}, [1, 0])
    assert (totals.spent(), totals.counts) == ({1: 8}, [2, 0])
    assert (copied.buckets, totals.buckets) == ([1, 0, 0], [2, 0, 0])


def test_what_is_no_request_is_refused(totals) -> None:
    with pytest.raises((AttributeError, TypeError)):
        totals.add("no request")

    assert totals.buckets == [0, 0, 0]
