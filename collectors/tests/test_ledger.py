"""What requests are told apart by, and what they are not."""

from __future__ import annotations

import pytest

from keylag_otel import instruments, ledger
from keylag_otel.clock import start
from keylag_otel.ledger import Ledger

TOKENS = "/v3/auth/tokens"
USERS = "/v3/users/<string:user_id>"


def add(book: Ledger, method: str, route: str | None, status: int, **more: str) -> None:
    clock = start({"REQUEST_METHOD": method})
    clock.route = route
    clock.auth_method = more.get("auth_method")
    book.add(clock, status)


def routes(book: Ledger) -> list[str | None]:
    return [attributes.get(instruments.ROUTE) for attributes, _ in book.rows()]


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
def test_a_refusal_has_a_route_only_where_it_is_about_a_token(
    method, route, status, is_known
) -> None:
    book = Ledger()
    add(book, method, route, status)

    assert (routes(book) != [None]) == is_known


def test_who_is_refused_while_logging_in_elsewhere_has_a_route() -> None:
    book = Ledger()
    add(book, "GET", "/v3/federation", 401, auth_method="openid")

    assert routes(book) == ["/v3/federation"]


@pytest.mark.parametrize("recorded", [True, False])
def test_beyond_the_limit_all_rows_are_one(monkeypatch, recorded) -> None:
    monkeypatch.setattr(ledger, "LIMIT", 10)
    seen: list[dict] = []
    book = Ledger()
    book.reset(lambda _, attributes: seen.append(attributes) if recorded else None)

    for number in range(100):
        add(book, "GET", f"/v3/{number}", 200)
    add(book, "GET", "/v3/0", 200)

    sizes = [sum(totals.buckets) for _, totals in book.rows()]
    assert sizes == [2, *[1] * 9, 90]
    assert book.rows()[-1].attributes == {instruments.OVERFLOW: True}
    assert seen[50:51] == ([{instruments.OVERFLOW: True}] if recorded else [])


def test_a_row_beyond_the_limit_is_nobodys_example(monkeypatch) -> None:
    monkeypatch.setattr(ledger, "LIMIT", 0)
    book, seen = Ledger(), []
    book.reset(exemplify=lambda _, attributes: seen.append(attributes))
    clock = start({"REQUEST_METHOD": "GET"})
    book.add(clock, 200)
    book.exemplify(clock, 200)

    assert seen == []
    assert len(book._attributes) == 1
