"""Deadlocks, retries and pool waits on a real MariaDB with each driver."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from backend_servers import DEBIAN_LIBRARIES
from keystone_client import Breakdown, Keystone

DRIVERS = ("pymysql", "mysqldb")
ROWS = range(1, 21)
PATIENCE = 60
"""Seconds until something is broken, not slow."""


class Database:
    """Keystone's database access: oslo.db, with a pool of one connection."""

    def __init__(self, url: str) -> None:
        from oslo_db.sqlalchemy import enginefacade
        from sqlalchemy import create_engine, text

        self.text = text
        self.facade = enginefacade.transaction_context()
        self.facade.configure(connection=url, max_pool_size=1, max_overflow=0)
        # SQLAlchemy 1.4 commits automatically without `future`.
        self.elsewhere = create_engine(url, future=True).connect()

    def fill(self) -> None:
        for statement in (
            "DROP TABLE IF EXISTS revocation_event",
            "CREATE TABLE revocation_event (id INT PRIMARY KEY, n INT) ENGINE=InnoDB",
        ):
            self.elsewhere.execute(self.text(statement))
        insert = self.text("INSERT INTO revocation_event VALUES (:row, 0)")
        self.elsewhere.execute(insert, [{"row": row} for row in ROWS])
        self.elsewhere.execute(self.text("COMMIT"))

    def touch(self, connection: Any, row: int) -> None:
        statement = "UPDATE revocation_event SET n = n + 1 WHERE id = :row"
        connection.execute(self.text(statement), {"row": row})


def deadlock(database: Database) -> None:
    """Cause a deadlock, lose it, and succeed with a retry."""
    from oslo_db import api

    first, *others = ROWS
    ahead = Event()

    def rival() -> None:
        for row in others:
            database.touch(database.elsewhere, row)
        ahead.set()
        database.touch(database.elsewhere, first)
        database.elsewhere.execute(database.text("COMMIT"))

    thread = Thread(target=rival)

    @api.wrap_db_retry(max_retries=2, retry_interval=0, retry_on_deadlock=True)
    def write() -> None:
        with database.facade.writer.using(SimpleNamespace()) as session:
            database.touch(session, first)
            if thread.ident is None:
                thread.start()
                ahead.wait(PATIENCE)
            database.touch(session, others[0])

    write()
    thread.join(PATIENCE)


def wait_for_the_pool(database: Database) -> None:
    """Request the only connection while another thread has it."""
    taken = Event()
    pool = database.facade.writer.get_engine().pool

    def hold() -> None:
        connection = pool.connect()
        taken.set()
        deadline = time.monotonic() + PATIENCE
        while not pool._pool.not_empty._waiters and time.monotonic() < deadline:
            time.sleep(0.001)
        connection.close()

    holder = Thread(target=hold)
    holder.start()
    taken.wait(PATIENCE)
    with database.facade.reader.using(SimpleNamespace()) as session:
        session.execute(database.text("SELECT COUNT(*) FROM revocation_event"))
    holder.join(PATIENCE)


DEEDS: dict[str, Callable[[Database], None]] = {
    "/deadlock": deadlock,
    "/wait": wait_for_the_pool,
}


def drive(url: str) -> dict[str, Breakdown] | str:
    """Run each in its own request; return the breakdowns, or what is missing."""
    from keylag_otel.request import TimedApplication

    sys.path.append(DEBIAN_LIBRARIES)
    try:
        database = Database(url)
    except ImportError as error:
        return str(error)
    database.fill()

    def application(environ: Any, start_response: Any) -> list[bytes]:
        DEEDS[environ["PATH_INFO"]](database)
        start_response("200 OK", [])
        return [b""]

    client = Keystone(TimedApplication(application))
    return {path: client.call("GET", path).breakdown for path in DEEDS}


@pytest.fixture(scope="module", params=DRIVERS)
def breakdowns(request, processes, mariadb) -> dict[str, Breakdown]:
    url = f"mysql+{request.param}://keystone@127.0.0.1:{mariadb}/keystone"
    found = processes.run(drive, url)
    if isinstance(found, str):
        pytest.skip(f"{found}; `make setup-tests` installs Debian's, for its Python")
    return found


def test_deadlock_and_retry_are_counted(breakdowns) -> None:
    met = breakdowns["/deadlock"]

    assert met.status == 200
    assert met.counter_sum("sql_errors", "revocation_event", "deadlock") == 1
    assert met.counter_sum("sql_errors") == 1
    assert met.counter_sum("sql_retries") == 1
    # Three that succeeded: one before the deadlock, two at the retry.
    assert met.counter_sum("sql_statements", "revocation_event") == 3
    assert met.counter_sum("sql_rows", "revocation_event") == 3
    assert met.phase("sql") > 0


def test_each_call_of_the_driver_has_a_duration(breakdowns) -> None:
    met, waited = breakdowns["/deadlock"], breakdowns["/wait"]

    statements = met.calls[("sql", "read")] + met.calls[("sql", "write")]
    assert statements == met.counts["sql_statements"]
    # Two that waited for locks, one of which failed, and two of the retry.
    assert met.calls[("sql", "write")] == 4
    assert met.calls[("sql", "commit")] == 1
    assert met.calls[("sql", "rollback")] >= 1
    # Old releases of oslo.db test a connection with a statement.
    assert waited.calls[("sql", "read")] == waited.counts["sql_statements"] >= 1
    assert ("sql", "write") not in waited.calls
    assert met.calls.get(("sql", "connect"), 0) == met.counter_sum("sql_connects")


def test_pool_wait_is_counted_and_is_sql_pool_time(
    breakdowns,
) -> None:
    waited = breakdowns["/wait"]

    assert waited.counter_sum("sql_pool_waits") == 1
    assert waited.counter_sum("sql_pool_checkouts") == 1
    assert waited.counter_sum("sql_errors") == 0
    assert waited.phase("sql_pool") > 0


def test_without_contention_nothing_waits(breakdowns) -> None:
    assert breakdowns["/deadlock"].counter_sum("sql_pool_waits") == 0
    assert breakdowns["/wait"].counter_sum("sql_retries") == 0
