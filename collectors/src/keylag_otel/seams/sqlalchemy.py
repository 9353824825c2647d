"""Seams of SQLAlchemy 1.4 to 2.1 and oslo.db: driver, pool, ORM and retries."""

from __future__ import annotations

from keylag_otel.seam import Seam
from keylag_otel.sql_comment import wrap_execute
from keylag_otel.statements import (
    count_checkout,
    count_connect,
    count_retry,
    timed_driver_call,
    wrap_statement,
)
from keylag_otel.wrappers import after_call, before_call, timed, timed_context

_STATEMENT = (wrap_execute, wrap_statement)
_STATEMENT_TAKES = ("self", "cursor", "statement")
_FACTORIES = {
    **dict.fromkeys(
        ("do_execute", "do_executemany", "do_execute_no_params"), _STATEMENT
    ),
    **{
        f"do_{name}": (timed_driver_call(name),)
        for name in ("ping", "commit", "rollback")
    },
    # The default cursors receive all rows with the statement: fetches are local.
    **dict.fromkeys(("fetchone", "fetchmany", "fetchall"), (timed("sql"),)),
}


def _dialect(module: str, owner: str, *names: str, optional: bool) -> tuple[Seam, ...]:
    return tuple(
        Seam(
            module,
            f"{owner}.{name}",
            _FACTORIES[name],
            optional=optional,
            expects=_STATEMENT_TAKES if "exec" in name else (),
        )
        for name in names
    )


SEAMS = (
    *_dialect(
        "sqlalchemy.engine.default",
        "DefaultDialect",
        "do_execute",
        "do_executemany",
        "do_execute_no_params",
        "do_commit",
        "do_rollback",
        optional=False,
    ),
    *_dialect("sqlalchemy.engine.default", "DefaultDialect", "do_ping", optional=True),
    *_dialect(
        "sqlalchemy.dialects.mysql.mysqldb",
        "MySQLDialect_mysqldb",
        "do_ping",
        "do_executemany",
        optional=True,
    ),
    *_dialect(
        "sqlalchemy.dialects.mysql.pymysql",
        "MySQLDialect_pymysql",
        "do_ping",
        optional=True,
    ),
    *_dialect(
        "sqlalchemy.engine.cursor",
        "CursorFetchStrategy",
        "fetchone",
        "fetchmany",
        "fetchall",
        optional=True,
    ),
    Seam(
        "sqlalchemy.engine.default",
        "DefaultDialect.connect",
        (timed_driver_call("connect"), before_call(count_connect)),
    ),
    Seam("sqlalchemy.pool.base", "Pool.connect", (timed("sql_pool"),)),
    Seam(
        "sqlalchemy.pool.impl",
        "QueuePool._do_get",
        (before_call(count_checkout),),
        optional=True,
    ),
    Seam(
        "oslo_db.api",
        "wrap_db_retry._is_exception_expected",
        (after_call(count_retry),),
        optional=True,
    ),
    # The body of a session, from before its creation: what is not the driver's time
    # is SQLAlchemy's.
    Seam(
        "oslo_db.sqlalchemy.enginefacade",
        "_TransactionContextManager._transaction_scope",
        (timed_context("orm"),),
    ),
)
