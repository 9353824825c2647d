"""SQL as SQLAlchemy 1.4 to 2.1 runs it: the driver, the pool, and the ORM around."""

from __future__ import annotations

from keylag_otel.seam import Seam
from keylag_otel.sql_comment import commenting
from keylag_otel.statements import (
    note_checkout,
    note_connect,
    note_retry,
    watch_statement,
)
from keylag_otel.wrappers import noted, noted_result, timed, timed_context

_STATEMENT = (commenting, watch_statement)
_STATEMENT_TAKES = ("self", "cursor", "statement")


def _dialect(module: str, owner: str, *names: str, optional: bool) -> tuple[Seam, ...]:
    return tuple(
        Seam(
            module,
            f"{owner}.{name}",
            _STATEMENT if "exec" in name else (timed("sql"),),
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
        (timed("sql"), noted(note_connect)),
    ),
    Seam("sqlalchemy.pool.base", "Pool.connect", (timed("sql_pool"),)),
    Seam(
        "sqlalchemy.pool.impl",
        "QueuePool._do_get",
        (noted(note_checkout),),
        optional=True,
    ),
    Seam(
        "oslo_db.api",
        "wrap_db_retry._is_exception_expected",
        (noted_result(note_retry),),
        optional=True,
    ),
    # All that is done with a session, from before it is made: what is not the
    # driver's in there is SQLAlchemy's.
    Seam(
        "oslo_db.sqlalchemy.enginefacade",
        "_TransactionContextManager._transaction_scope",
        (timed_context("orm"),),
    ),
)
