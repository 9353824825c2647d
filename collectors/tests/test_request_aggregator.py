"""The attributes that requests are aggregated by, and their limits."""

from __future__ import annotations

import pytest

from keylag_otel import instruments, request_aggregator
from keylag_otel.request_aggregator import RequestAggregator
from keylag_otel.request_timer import start_timer

TOKENS = "/v3/auth/tokens"
USERS = "/v3/users/<string:user_id>"


def add(
    aggregator: RequestAggregator,
    method: str,
    route: str | None,
    status: int,
    **more: str,
) -> None:
    timer = start_timer({"REQUEST_METHOD": method})
    timer.route = route
    timer.auth_method = more.get("auth_method")
    aggregator.add(timer, status)


def routes(aggregator: RequestAggregator) -> list[str | None]:
    return [
        attributes.get(instruments.ROUTE) for attributes, _ in aggregator.aggregates()
    ]


@pytest.mark.parametrize(
    ("method", "route", "status", "is_known"),
    [
        ("GET", USERS, 200, True),
        ("GET", USERS, 404, False),
        ("GET", USERS, 401, False),
        ("GET", USERS, 500, True),
        ("OPTIONS", USERS, 200, False),
        ("OPTIONS", TOKENS, 200, False),
        ("GET", TOKENS, 401, True),
        ("POST", TOKENS, 400, True),
    ],
)
def test_refused_requests_keep_only_the_token_route(
    method, route, status, is_known
) -> None:
    aggregator = RequestAggregator()
    add(aggregator, method, route, status)

    assert (routes(aggregator) != [None]) == is_known


def test_refused_login_keeps_its_route() -> None:
    aggregator = RequestAggregator()
    add(aggregator, "GET", "/v3/federation", 401, auth_method="openid")

    assert routes(aggregator) == ["/v3/federation"]


@pytest.mark.parametrize("recorded", [True, False])
def test_beyond_the_limit_requests_share_the_overflow_aggregate(
    monkeypatch, recorded
) -> None:
    monkeypatch.setattr(request_aggregator, "AGGREGATE_LIMIT", 10)
    seen: list[dict] = []
    aggregator = RequestAggregator()
    aggregator.reset(
        lambda _, attributes: seen.append(attributes) if recorded else None
    )

    for number in range(100):
        add(aggregator, "GET", f"/v3/{number}", 200)
    add(aggregator, "GET", "/v3/0", 200)

    sizes = [sum(aggregate.buckets) for _, aggregate in aggregator.aggregates()]
    assert sizes == [2, *[1] * 9, 90]
    assert aggregator.aggregates()[-1].attributes == {instruments.OVERFLOW: True}
    assert seen[50:51] == ([{instruments.OVERFLOW: True}] if recorded else [])


def test_overflow_aggregate_has_no_exemplar(monkeypatch) -> None:
    monkeypatch.setattr(request_aggregator, "AGGREGATE_LIMIT", 0)
    aggregator, seen = RequestAggregator(), []
    aggregator.reset(record_exemplar=lambda _, attributes: seen.append(attributes))
    timer = start_timer({"REQUEST_METHOD": "GET"})
    aggregator.add(timer, 200)
    aggregator.record_exemplar(timer, 200)

    assert seen == []
    assert len(aggregator._attributes) == 1
