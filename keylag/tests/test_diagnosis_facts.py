"""Facts that are read from Prometheus' answers."""

import math

import pytest

from keylag.diagnosis.facts import (
    Facts,
    MissingSourceError,
    Window,
    bucket_quantile,
    make_calls,
)
from keylag.diagnosis.measurements import MEASUREMENTS, SOURCES
from keylag.diagnosis.prometheus import Sample
from keylag.diagnosis.reading import fill

WINDOW = Window(0.0, 100.0)
POST = {
    "http_request_method": "POST",
    "keystone_auth_method": "password",
    "http_response_status_code": "201",
}
REFUSED = {**POST, "http_response_status_code": "401"}
FAILED = {**POST, "http_response_status_code": "503"}
CELL = {"keystone_phase": "sql", "keystone_operation": "authenticate"}


def test_times_and_counts_are_per_call() -> None:
    (calls,) = make_calls(
        {
            "calls": [Sample(POST, 2.0)],
            "cells": [Sample({**POST, **CELL}, 0.5)],
            "statements": [Sample(POST, 8.0)],
            "round_trips": [Sample(POST, 30.0)],
        },
        WINDOW,
    )

    assert calls.kind == ("POST", "password")
    assert calls.cells == {("sql", "authenticate"): 0.25}
    assert (calls.statements, calls.round_trips) == (4.0, 15.0)


def test_refused_and_failed_calls_are_apart() -> None:
    answers = {"calls": [Sample(POST, 2.0), Sample(REFUSED, 3.0), Sample(FAILED, 1.0)]}

    calls = make_calls(answers, WINDOW)

    assert {one.outcome: one.per_second for one in calls} == {
        "served": 2.0,
        "refused": 3.0,
        "failed": 1.0,
    }


def test_few_calls_say_nothing() -> None:
    assert make_calls({"calls": [Sample(POST, 0.04)]}, WINDOW) == []


def test_spent_selects_phases_and_operations() -> None:
    (calls,) = make_calls(
        {
            "calls": [Sample(POST, 1.0)],
            "cells": [
                Sample({**POST, **CELL}, 0.1),
                Sample({**POST, **CELL, "keystone_operation": "roles"}, 0.2),
                Sample({**POST, **CELL, "keystone_phase": "orm"}, 0.4),
            ],
        },
        WINDOW,
    )

    assert calls.spent(["sql"]) == pytest.approx(0.3)
    assert calls.spent(operations=["authenticate"]) == pytest.approx(0.5)
    assert calls.spent(["sql"], ["roles"]) == pytest.approx(0.2)
    assert calls.seconds == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("share", "seconds"), [(0.25, 0.5), (0.5, 1.0), (0.75, 2.0), (1.0, 2.0)]
)
def test_quantile_interpolates_as_prometheus_does(share: float, seconds: float) -> None:
    """The last bucket has no upper bound, so its lower one is returned."""
    buckets = {1.0: 2.0, 2.0: 3.0, math.inf: 4.0}

    assert bucket_quantile(buckets, share) == pytest.approx(seconds)


def test_quantile_of_nothing_is_unknown() -> None:
    assert bucket_quantile({}, 0.5) is None
    assert bucket_quantile({1.0: 0.0, math.inf: 0.0}, 0.5) is None


def test_missing_source_is_named() -> None:
    facts = Facts(WINDOW, [], {})

    with pytest.raises(MissingSourceError, match="memcached"):
        facts.number("memcached_up")


def test_matchers_are_in_each_selector() -> None:
    query = "sum(rate(a{TOKENS}[WINDOW])) / sum(b{ALL})"

    filled = fill(query, 60, 'cluster="one"')

    assert filled == (
        'sum(rate(a{http_route="/v3/auth/tokens", cluster="one"}[60s]))'
        ' / sum(b{cluster="one"})'
    )


def test_queries_without_matchers_have_no_empty_braces() -> None:
    filled = [fill(one.promql, 60) for one in MEASUREMENTS.values()]

    assert not [query for query in filled if "{}" in query or "ALL" in query]
    assert all(one.source in SOURCES for one in MEASUREMENTS.values())
