"""SQL as SQLAlchemy 1.4 to 2.1 runs it: the driver, the pool, and the ORM around."""

from __future__ import annotations

from functools import wraps
from typing import Any

from keylag_otel.seam import Seam
from keylag_otel.statements import (
    note_checkout,
    note_connect,
    note_retry,
    watch_statement,
)
from keylag_otel.wrappers import Call, noted, noted_result, timed, timed_iterator

_STATEMENT = (watch_statement, timed("sql"))


def timed_chunks(init: Call) -> Call:
    """Book the loading of rows into objects, which happens while iterating."""

    @wraps(init)
    def watched(
        self: Any, cursor_metadata: Any, chunks: Call, *args: Any, **kwargs: Any
    ) -> None:
        def watched_chunks(size: Any) -> Any:
            return timed_iterator("orm", iter(chunks(size)))

        init(self, cursor_metadata, watched_chunks, *args, **kwargs)

    return watched


def _dialect(module: str, owner: str, *names: str, optional: bool) -> tuple[Seam, ...]:
    return tuple(
        Seam(
            module,
            f"{owner}.{name}",
            _STATEMENT if "exec" in name else (timed("sql"),),
            optional=optional,
        )
        for name in names
    )


def _orm(module: str, owner: str, *names: str) -> tuple[Seam, ...]:
    return tuple(
        Seam(module, f"{owner}.{name}", (timed("orm"),), optional=True)
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
    Seam(
        "sqlalchemy.engine.result",
        "ChunkedIteratorResult.__init__",
        (timed_chunks,),
    ),
    *_orm(
        "sqlalchemy.orm.session",
        "Session",
        "__init__",
        "begin",
        "close",
        "commit",
        "delete",
        "execute",
        "flush",
        "get",
        "merge",
        "query",
        "refresh",
        "rollback",
        "scalar",
        "scalars",
    ),
    # What is loaded when an attribute is first looked at, and what is compared.
    *_orm("sqlalchemy.orm.strategies", "LazyLoader", "_load_for_state"),
    *_orm("sqlalchemy.orm.strategies", "_LazyLoader", "_load_for_state"),
    *_orm("sqlalchemy.orm.state", "InstanceState", "_load_expired"),
    *_orm("sqlalchemy.orm.attributes", "QueryableAttribute", "operate"),
    *(
        Seam(
            "oslo_db.sqlalchemy.enginefacade",
            f"{owner}._create_session",
            (timed("orm"),),
            optional=True,
        )
        for owner in ("_AbstractTransactionFactory", "_TransactionFactory")
    ),
    *_orm(
        "sqlalchemy.orm.query",
        "Query",
        "__iter__",
        "all",
        "count",
        "delete",
        "filter",
        "filter_by",
        "first",
        "get",
        "join",
        "one",
        "one_or_none",
        "options",
        "outerjoin",
        "scalar",
        "update",
    ),
)
