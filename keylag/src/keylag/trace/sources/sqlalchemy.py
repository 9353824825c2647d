"""Reads the table of OSProfiler's SQLAlchemy driver in MySQL or MariaDB.

The driver itself cannot read it with SQLAlchemy 2.
"""

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pymysql
from pymysql.cursors import DictCursor

from keylag.location import without_credentials
from keylag.trace.model import Trace, TraceError
from keylag.trace.osprofiler import Notification, parse_notifications

MYSQL_PORT: Final = 3306
_COLUMNS: Final = "timestamp, base_id, parent_id, trace_id, name, data"
_QUERY: Final = f"SELECT {_COLUMNS} FROM data WHERE base_id = %s"  # noqa: S608 - fixed


def read(location: str, trace_id: str) -> Trace:
    """Read a trace from the database of a SQLAlchemy URL; raises TraceError."""
    try:
        url = urlsplit(location)
        with pymysql.connect(
            host=url.hostname,
            port=url.port or MYSQL_PORT,
            user=unquote(url.username or ""),
            password=unquote(url.password or ""),
            database=url.path.strip("/"),
            cursorclass=DictCursor,
        ) as connection:
            cursor = connection.cursor()
            cursor.execute(_QUERY, (trace_id,))
            rows = list(cursor.fetchall())
    except (pymysql.Error, ValueError) as error:
        message = f"{without_credentials(location)} cannot be read: {error.args[-1]}."
        raise TraceError(message) from error
    return parse_notifications(
        _notifications(rows), trace_id, without_credentials(location)
    )


def _notifications(rows: list[dict[str, Any]]) -> Iterator[Notification]:
    for row in rows:
        data = row.pop("data")
        # Both the driver and the type of the column encode it as JSON.
        while isinstance(data, str):
            data = json.loads(data)
        yield {**data, **row}
