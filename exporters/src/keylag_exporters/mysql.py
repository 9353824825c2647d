"""Connections for sources that speak the MySQL protocol."""

from __future__ import annotations

import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pymysql

from keylag_exporters.model import Option, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pymysql.cursors import Cursor

# Unreachable is also who does not let us in: the server may come to do so later.
_UNREACHABLE = {1040, 1044, 1045, 1129, 1130, 1203, 1226, 1698, 2003, 2006, 2013, 2055}


def options(port: int, user: str) -> tuple[Option, ...]:
    """Return the settings of a connection."""
    return (
        Option("host", "Name or address of the server.", default="127.0.0.1"),
        Option("port", "Port of the server.", int, port),
        Option("socket", "Unix socket, instead of host and port."),
        Option("user", "Account to use.", default=user),
        Option("password", "Password of the account.", secret=True),
        Option("tls-ca", "CA certificates; given, the server must prove its name."),
    )


@contextmanager
def cursor(settings: Mapping[str, Any]) -> Iterator[Cursor]:
    """Yield a cursor on a connection of its own; close both.

    Raises UnreachableError where there is no server, or none that lets us in.
    """
    timeout = settings["timeout"]
    ca = settings["tls_ca"]
    try:
        connection = pymysql.connect(
            host=settings["host"],
            port=settings["port"],
            unix_socket=settings["socket"],
            user=settings["user"],
            password=settings["password"] or "",
            database=settings.get("database"),
            ssl=ssl.create_default_context(cafile=ca) if ca else None,
            connect_timeout=max(1, round(timeout)),
            read_timeout=timeout,
            write_timeout=timeout,
            autocommit=None,
        )
        with connection, connection.cursor() as made:
            yield made
    except pymysql.MySQLError as error:
        if error.args and error.args[0] in _UNREACHABLE:
            raise UnreachableError(str(error)) from error
        raise
