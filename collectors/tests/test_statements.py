"""Statements: table class, rows, errors and the comment."""

from __future__ import annotations

import pytest

from keylag_otel import sql_comment, statements
from keylag_otel.counters import counter_attributes
from keylag_otel.model import CALL_KINDS, cell_of
from keylag_otel.request_timer import timer_var


class Cursor:
    """A cursor that returned some rows."""

    def __init__(self, rowcount: int) -> None:
        self.rowcount = rowcount


def counted(timer) -> dict[tuple, int]:
    """Return counters by (instrument, *attribute values)."""
    return {
        (name, *attributes.values()): count
        for number, count in timer.counters.items()
        for name, attributes in [counter_attributes(number)]
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
def test_statement_has_a_table_class(statement, part) -> None:
    assert statements.table_class(statement) == part


def test_rows_are_counted_if_rowcount_is_positive(active_timer) -> None:
    execute = statements.wrap_statement(lambda *_: None)

    execute(None, Cursor(3), "SELECT a FROM project", ())
    execute(None, Cursor(-1), "SELECT a FROM project", ())

    assert counted(active_timer) == {
        ("sql_statements", "project"): 2,
        ("sql_rows", "project"): 3,
    }
    assert active_timer.counts[0] == 2


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ("SELECT 1", "read"),
        ("SHOW TABLES", "read"),
        ("INSERT INTO role VALUES (1)", "write"),
        ("UPDATE role SET a=1", "write"),
        ("delete from role", "write"),
    ],
)
def test_statements_are_calls_that_read_or_write(active_timer, statement, call) -> None:
    statements.wrap_statement(lambda *_: None)(None, Cursor(0), statement, ())

    assert names_of(active_timer.calls) == [("sql", call)]


@pytest.mark.parametrize("call", ["connect", "ping", "commit", "rollback"])
def test_calls_without_a_statement_have_their_own_kind(active_timer, call) -> None:
    statements.timed_driver_call(call)(lambda *_: None)("dialect", "connection", "I")

    assert names_of(active_timer.calls) == [("sql", call)]


def test_failed_statement_has_a_duration(active_timer, time) -> None:
    def fail(*_: object) -> None:
        time.passes(3_000_000_000)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        statements.wrap_statement(fail)(None, Cursor(0), "UPDATE role SET a=1", ())

    ((nanoseconds, *buckets),) = active_timer.calls.values()
    assert (nanoseconds, buckets[-2]) == (3_000_000_000, 1)


def names_of(calls: dict[int, list[int]]) -> list[tuple[str, str]]:
    return [CALL_KINDS[kind] for kind in calls]


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
def test_error_is_counted_by_kind_and_propagates(active_timer, number, kind) -> None:
    error = RuntimeError(number, "what the server said")

    def fail(*_) -> None:
        raise error

    with pytest.raises(RuntimeError) as caught:
        statements.wrap_statement(fail)(None, Cursor(0), "DELETE FROM trust", ())

    assert caught.value is error
    assert counted(active_timer) == {("sql_errors", "trust", kind): 1}


def test_commit_that_a_cluster_refuses_is_counted(active_timer) -> None:
    def refuse(*_) -> None:
        raise RuntimeError(1213, "Deadlock found when trying to get lock")

    commit = statements.timed_driver_call("commit")(refuse)
    with pytest.raises(RuntimeError):
        commit(None, None)

    assert counted(active_timer) == {("sql_errors", "commit", "deadlock"): 1}


def test_statement_cache_is_bounded(active_timer, monkeypatch) -> None:
    monkeypatch.setattr(statements, "_CACHE_LIMIT", 10)
    execute = statements.wrap_statement(lambda *_: None)

    for number in range(100):
        execute(None, Cursor(0), f"COMMIT {number}", ())

    assert len(statements._cached_ids) <= 10


def test_long_statement_is_counted_and_not_cached(monkeypatch) -> None:
    monkeypatch.setattr(statements, "_cached_ids", {})
    listed = ", ".join(["%s"] * 10_000)

    text = f"SELECT * FROM role WHERE role.id IN ({listed})"  # noqa: S608 - no query
    numbers = statements._counter_ids(text)

    assert numbers == statements._counter_ids("SELECT * FROM role")
    assert list(statements._cached_ids) == ["SELECT * FROM role"]


def test_cursor_without_rowcount_is_suppressed(active_timer) -> None:
    execute = statements.wrap_statement(lambda *_: "executed")

    assert execute(None, object(), "SELECT a FROM role", ()) == "executed"


def sent(_dialect: object, _cursor: object, statement: str) -> str:
    """Send a statement; returns what was sent."""
    return statement


def test_statements_are_unchanged_by_default(monkeypatch) -> None:
    monkeypatch.delenv("KEYLAG_SQL_COMMENT", raising=False)

    assert sql_comment.wrap_execute(sent) is sent


def test_executed_statement_has_the_comment(active_timer, monkeypatch) -> None:
    monkeypatch.setenv("KEYLAG_SQL_COMMENT", "true")
    active_timer.method, active_timer.route = "GET", "/v3/auth/tokens"
    execute = sql_comment.wrap_execute(sent)

    assert execute(None, None, "SELECT 1").startswith("SELECT 1/*keylag:")
    timer_var.set(None)
    assert execute(None, None, "SELECT 1") == "SELECT 1"


def test_failing_comment_is_suppressed(active_timer, monkeypatch) -> None:
    monkeypatch.setenv("KEYLAG_SQL_COMMENT", "true")
    active_timer.route = object()

    assert sql_comment.wrap_execute(sent)(None, None, "SELECT 1") == "SELECT 1"


def test_comment_has_route_and_operation(active_timer) -> None:
    active_timer.method, active_timer.route = "POST", "/v3/auth/tokens"
    active_timer.current_cell = cell_of("sql", "validate")

    assert sql_comment.add_comment("SELECT 1", active_timer) == (
        "SELECT 1/*keylag:route='POST /v3/auth/tokens',operation='validate'*/"
    )


def test_comment_escapes_its_content(monkeypatch) -> None:
    said = sql_comment.comment("GET", "/a*/ DROP 'x' %s", "other")

    assert said.count("*/") == 1
    assert "%%2A" in said
    assert "%s" not in said.replace("%%", "")


def test_the_route_of_a_comment_is_the_template_of_the_metrics() -> None:
    said = sql_comment.comment("GET", "/v3/users/<string:user_id>", "roles")

    assert "route='GET /v3/users/{user_id}'" in said


def test_without_route_there_is_no_comment(active_timer) -> None:
    assert sql_comment.add_comment("SELECT 1", active_timer) == "SELECT 1"


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
def test_wait_is_counted_if_the_pool_is_exhausted(active_timer, pool, waits) -> None:
    statements.count_checkout(active_timer, (pool,), {})

    assert counted(active_timer).get(("sql_pool_waits",), 0) == waits
    assert counted(active_timer)[("sql_pool_checkouts",)] == 1
