"""The aggregator, native and pure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from keylag_otel.model import CALL_BOUNDS


@pytest.fixture
def aggregator(hot_path) -> Any:
    return hot_path.Aggregator((10, 20), 2)


@pytest.fixture
def request_of(hot_path, time_source) -> Any:
    """Return a request that took 5 ns, and what it counted."""

    def make(method: str = "GET", counters: dict[int, int] | None = None) -> Any:
        timer = hot_path.RequestTimer(method, 3, 2)
        time_source.passes(5)
        timer.accumulate()
        for number, count in (counters or {}).items():
            timer.increment(number, count)
        return timer

    return make


def test_new_object_is_empty(aggregator) -> None:
    assert (aggregator.by_key(), aggregator.counters) == ({}, {})
    assert aggregator.calls == {}


def test_requests_are_aggregated_by_key(aggregator, request_of) -> None:
    routed = request_of()
    routed.route, routed.auth_method = "/v3/users", "password"
    for timer, status in (
        *((request_of(), 200), (request_of(), 200), (request_of(), 404)),
        *((request_of("POST"), 200), (routed, 200)),
    ):
        aggregator.add(timer, status)

    assert {
        key: aggregate.wall_ns for key, aggregate in aggregator.by_key().items()
    } == {
        ("GET", None, 200, None): 10,
        ("GET", None, 404, None): 5,
        ("POST", None, 200, None): 5,
        ("GET", "/v3/users", 200, "password"): 5,
    }


def test_single_calls_are_summed_over_all_keys(
    aggregator, request_of, hot_path, time_source
) -> None:
    backend = SimpleNamespace(_keylag_layer="layer")
    for method, kinds in (("GET", (0, 0, 15)), ("POST", (0,))):
        timer = request_of(method)
        hot_path.timer_var.set(timer)
        for kind in kinds:
            hot_path.wrap_cache_call(
                lambda _: time_source.passes(CALL_BOUNDS[1]), 0, kind, print, print
            )(backend)
        hot_path.timer_var.set(None)
        aggregator.add(timer, 200)

    buckets = [0] * (len(CALL_BOUNDS) + 1)
    three, one = ([*buckets] for _ in range(2))
    three[1], one[1] = 3, 1
    total = CALL_BOUNDS[1]
    assert aggregator.calls == {0: [3 * total, *three], 15: [total, *one]}
    aggregator.clear()
    assert aggregator.calls == {}


def test_counters_are_summed_over_all_keys(aggregator, request_of) -> None:
    many = dict.fromkeys(range(300), 1)
    aggregator.add(request_of(counters={7: 2, 10**9: 1}), 200)
    aggregator.add(request_of("POST", counters=many), 500)
    aggregator.increment(7)

    assert aggregator.counters == {**many, 7: 4, 10**9: 1}


def test_returned_values_are_copies(aggregator, request_of) -> None:
    aggregator.add(request_of(counters={1: 1}), 200)
    (aggregate,), counters = aggregator.by_key().values(), aggregator.counters
    aggregator.add(request_of(counters={1: 1}), 200)

    assert (aggregate.wall_ns, counters) == (5, {1: 1})


def test_on_request_gets_timer_and_key(aggregator, request_of) -> None:
    seen: list[Any] = []
    aggregator.on_request = lambda *args: seen.append(args)
    timer = request_of()
    aggregator.add(timer, 200)

    assert seen == [(timer, ("GET", None, 200, None))]


def test_failing_on_request_still_counts_the_request(aggregator, request_of) -> None:
    aggregator.on_request = lambda *_: 1 / 0

    with pytest.raises(ZeroDivisionError):
        aggregator.add(request_of(), 200)

    assert len(aggregator.by_key()) == 1


def test_clear_removes_everything(aggregator, request_of) -> None:
    aggregator.add(request_of(counters={1: 1}), 200)
    aggregator.clear()

    assert (aggregator.by_key(), aggregator.counters) == ({}, {})


@pytest.mark.parametrize("wrong", [(), (None, 200), ("clock", 200)])
def test_add_requires_a_timer(aggregator, wrong) -> None:
    with pytest.raises((TypeError, AttributeError)):
        aggregator.add(*wrong)

    assert aggregator.by_key() == {}
