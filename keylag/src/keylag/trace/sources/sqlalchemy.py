"""The table that OSProfiler's driver for SQLAlchemy fills in MySQL or MariaDB.

The driver itself cannot read it with SQLAlchemy 2, so this does.
"""

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pymysql
from pymysql.cursors import DictCursor

from keylag.trace.model import Trace, TraceError
from keylag.trace.osprofiler import Notification, of_notifications
from keylag.trace.sources.place import in_words

MYSQL_PORT: Final = 3306
_COLUMNS: Final = "timestamp, base_id, parent_id, trace_id, name, data"
_QUERY: Final = f"SELECT {_COLUMNS} FROM data WHERE base_id = %s"  # noqa: S608 - fixed


def read(place: str, trace_id: str) -> Trace:
    """Read a trace from the database of a SQLAlchemy URL."""
    try:
        where = urlsplit(place)
        with pymysql.connect(
            host=where.hostname,
            port=where.port or MYSQL_PORT,
            user=unquote(where.username or ""),
            password=unquote(where.password or ""),
            database=where.path.strip("/"),
            cursorclass=DictCursor,
        ) as connection:
            cursor = connection.cursor()
            cursor.execute(_QUERY, (trace_id,))
            rows = list(cursor.fetchall())
    except (pymysql.Error, ValueError) as error:
        message = f"{in_words(place)} cannot be read: {error.args[-1]}."
        raise TraceError(message) from error
    return of_notifications(_notifications(rows), trace_id, in_words(place))


def _notifications(rows: list[dict[str, Any]]) -> Iterator[Notification]:
    """Put together what the driver took apart."""
    for row in rows:
        data = row.pop("data")
        # The driver makes text of it, and the column's type makes text of that.
        while isinstance(data, str):
            data = json.loads(data)
        yield {**data, **row}
