"""What all requests add up to, in Python and in C."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def sums(half) -> Any:
    return half.Sums((10, 20), 2)


@pytest.fixture
def request_of(half, half_time) -> Any:
    """Return a request that took 5 ns, and what it counted."""

    def make(method: str = "GET", tallies: dict[int, int] | None = None) -> Any:
        clock = half.Clock(method, 3, 2)
        half_time.passes(5)
        clock.book()
        for number, count in (tallies or {}).items():
            clock.tally(number, count)
        return clock

    return make


def test_before_any_request_there_is_nothing(sums) -> None:
    assert (sums.by_key(), sums.tallies) == ({}, {})


def test_requests_are_told_apart(sums, request_of) -> None:
    routed = request_of()
    routed.route, routed.auth_method = "/v3/users", "password"
    for clock, status in (
        *((request_of(), 200), (request_of(), 200), (request_of(), 404)),
        *((request_of("POST"), 200), (routed, 200)),
    ):
        sums.add(clock, status)

    assert {key: totals.wall_ns for key, totals in sums.by_key().items()} == {
        ("GET", None, 200, None): 10,
        ("GET", None, 404, None): 5,
        ("POST", None, 200, None): 5,
        ("GET", "/v3/users", 200, "password"): 5,
    }


def test_tallies_are_of_all_requests(sums, request_of) -> None:
    many = dict.fromkeys(range(300), 1)
    sums.add(request_of(tallies={7: 2, 10**9: 1}), 200)
    sums.add(request_of("POST", tallies=many), 500)
    sums.tally(7)

    assert sums.tallies == {**many, 7: 4, 10**9: 1}


def test_what_is_given_out_stays_as_it_is(sums, request_of) -> None:
    sums.add(request_of(tallies={1: 1}), 200)
    (totals,), tallies = sums.by_key().values(), sums.tallies
    sums.add(request_of(tallies={1: 1}), 200)

    assert (totals.wall_ns, tallies) == (5, {1: 1})


def test_somebody_may_be_told_of_each_request(sums, request_of) -> None:
    told: list[Any] = []
    sums.recorded = lambda *args: told.append(args)
    clock = request_of()
    sums.add(clock, 200)

    assert told == [(clock, ("GET", None, 200, None))]


def test_who_is_told_may_fail_and_the_request_is_counted(sums, request_of) -> None:
    sums.recorded = lambda *_: 1 / 0

    with pytest.raises(ZeroDivisionError):
        sums.add(request_of(), 200)

    assert len(sums.by_key()) == 1


def test_it_can_start_from_nothing_again(sums, request_of) -> None:
    sums.add(request_of(tallies={1: 1}), 200)
    sums.clear()

    assert (sums.by_key(), sums.tallies) == ({}, {})


@pytest.mark.parametrize("wrong", [(), (None, 200), ("clock", 200)])
def test_what_is_no_request_is_refused(sums, wrong) -> None:
    with pytest.raises((TypeError, AttributeError)):
        sums.add(*wrong)

    assert sums.by_key() == {}
