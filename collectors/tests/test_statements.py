"""Statements: their part of Keystone, rows, errors, and the comment."""

from __future__ import annotations

import pytest

from keylag_otel import sql_comment, statements
from keylag_otel.clock import active
from keylag_otel.model import cell_of
from keylag_otel.tally import attributes_of


class Cursor:
    """A cursor that returned some rows."""

    def __init__(self, rowcount: int) -> None:
        self.rowcount = rowcount


def counted(clock) -> dict[tuple, int]:
    """Return what was tallied by (instrument, *attribute values)."""
    return {
        (name, *attributes.values()): count
        for number, count in clock.tallies.items()
        for name, attributes in [attributes_of(number)]
    }


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("SELECT 1", "other"),
        ("SELECT a FROM revocation_event WHERE x", "revocation_event"),
        ("SELECT a FROM user LEFT OUTER JOIN local_user ON x", "user+password"),
        ("SELECT a FROM project, revocation_event", "revocation_event"),
        ("INSERT INTO `assignment` (a) VALUES (1)", "assignment"),
        ('UPDATE "service" SET a=1', "catalog"),
        ("DELETE FROM trust_role", "trust"),
        ("select a from (select b from endpoint) as t", "catalog"),
        ("SELECT from_user FROM nowhere", "other"),
    ],
)
def test_a_statement_belongs_to_a_part_of_keystone(statement, part) -> None:
    assert statements.table_class(statement) == part


def test_rows_are_counted_where_the_driver_knows_them(running) -> None:
    execute = statements.watch_statement(lambda *_: None)

    execute(None, Cursor(3), "SELECT a FROM project", ())
    execute(None, Cursor(-1), "SELECT a FROM project", ())

    assert counted(running) == {
        ("sql_statements", "project"): 2,
        ("sql_rows", "project"): 3,
    }
    assert running.counts[0] == 2


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (1213, "deadlock"),
        (1205, "lock_timeout"),
        (2013, "disconnect"),
        (1064, "other"),
        ("text", "other"),
    ],
)
def test_an_error_is_counted_by_kind_and_raised_as_it_was(
    running, number, kind
) -> None:
    error = RuntimeError(number, "what the server said")

    def fail(*_) -> None:
        raise error

    with pytest.raises(RuntimeError) as caught:
        statements.watch_statement(fail)(None, Cursor(0), "DELETE FROM trust", ())

    assert caught.value is error
    assert counted(running) == {("sql_errors", "trust", kind): 1}


def test_generated_texts_do_not_fill_the_memory(running, monkeypatch) -> None:
    monkeypatch.setattr(statements, "_KNOWN_LIMIT", 10)
    execute = statements.watch_statement(lambda *_: None)

    for number in range(100):
        execute(None, Cursor(0), f"COMMIT {number}", ())

    assert len(statements._known) <= 10


def test_a_statement_of_many_values_is_counted_and_not_kept(monkeypatch) -> None:
    monkeypatch.setattr(statements, "_known", {})
    listed = ", ".join(["%s"] * 10_000)

    text = f"SELECT * FROM role WHERE role.id IN ({listed})"  # noqa: S608 - no query
    numbers = statements._tallies(text)

    assert numbers == statements._tallies("SELECT * FROM role")
    assert list(statements._known) == ["SELECT * FROM role"]


def test_a_cursor_without_rowcount_is_our_problem_alone(running) -> None:
    execute = statements.watch_statement(lambda *_: "executed")

    assert execute(None, object(), "SELECT a FROM role", ()) == "executed"


def sent(_dialect: object, _cursor: object, statement: str) -> str:
    """Send a statement; returns what was sent."""
    return statement


def test_statements_are_sent_as_they_are_unless_comments_are_on(monkeypatch) -> None:
    monkeypatch.delenv("KEYLAG_SQL_COMMENT", raising=False)

    assert sql_comment.commenting(sent) is sent


def test_what_is_executed_is_commented(running, monkeypatch) -> None:
    monkeypatch.setenv("KEYLAG_SQL_COMMENT", "true")
    running.method, running.route = "GET", "/v3/auth/tokens"
    execute = sql_comment.commenting(sent)

    assert execute(None, None, "SELECT 1").startswith("SELECT 1/*keylag:")
    active.set(None)
    assert execute(None, None, "SELECT 1") == "SELECT 1"


def test_a_comment_that_fails_is_our_problem_alone(running, monkeypatch) -> None:
    monkeypatch.setenv("KEYLAG_SQL_COMMENT", "true")
    running.route = object()

    assert sql_comment.commenting(sent)(None, None, "SELECT 1") == "SELECT 1"


def test_the_comment_says_route_and_operation(running) -> None:
    running.method, running.route = "POST", "/v3/auth/tokens"
    running.at = cell_of("sql", "validate")

    assert sql_comment.commented("SELECT 1", running) == (
        "SELECT 1/*keylag:route='POST /v3/auth/tokens',operation='validate'*/"
    )


def test_a_comment_cannot_be_closed_from_within(monkeypatch) -> None:
    said = sql_comment.comment("GET", "/a*/ DROP 'x' %s", "other")

    assert said.count("*/") == 1
    assert "%%2A" in said
    assert "%s" not in said.replace("%%", "")


def test_the_route_of_a_comment_is_the_template_of_the_metrics() -> None:
    said = sql_comment.comment("GET", "/v3/users/<string:user_id>", "roles")

    assert "route='GET /v3/users/{user_id}'" in said


def test_before_a_route_is_known_there_is_no_comment(running) -> None:
    assert sql_comment.commented("SELECT 1", running) == "SELECT 1"


class Pool:
    """A pool as SQLAlchemy describes it."""

    def __init__(self, free: int, overflow: int, limit: int) -> None:
        self._free, self._overflow, self._max_overflow = free, overflow, limit

    def checkedin(self) -> int:
        return self._free

    def overflow(self) -> int:
        return self._overflow


@pytest.mark.parametrize(
    ("pool", "waits"),
    [
        (Pool(free=1, overflow=50, limit=50), 0),
        (Pool(free=0, overflow=49, limit=50), 0),
        (Pool(free=0, overflow=50, limit=50), 1),
        (Pool(free=0, overflow=5, limit=-1), 0),
    ],
)
def test_a_wait_is_when_none_is_free_and_none_may_be_added(
    running, pool, waits
) -> None:
    statements.note_checkout(running, (pool,), {})

    assert counted(running).get(("sql_pool_waits",), 0) == waits
    assert counted(running)[("sql_pool_checkouts",)] == 1
