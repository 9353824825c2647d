"""Connections of sources that use the MySQL protocol."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pymysql
from pymysql.constants import CLIENT

from keylag_exporters.model import Option, UnreachableError
from keylag_exporters.settings import parse_port, tls_context

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pymysql.cursors import Cursor

# A refused account counts as unreachable, since it may be granted later. So do a server
# that shuts down (1053), kills the connection (1927) or left its Galera cluster (1047).
_UNREACHABLE_CODES = {
    *(1040, 1044, 1045, 1047, 1053, 1129, 1130, 1203, 1226, 1698, 1927),
    *(2003, 2006, 2013, 2055),
}
_NO_TLS = 2026
"""MySQL's code of a TLS connection that failed."""


def connection_options(port: int, user: str) -> tuple[Option, ...]:
    """Return the options of a connection, with the default port and user."""
    return (
        Option("host", "Name or address of the server.", default="127.0.0.1"),
        Option("port", "Port of the server.", parse_port, port),
        Option("socket", "Unix socket, instead of host and port."),
        Option("user", "Name of the account.", default=user),
        Option("password", "Password of the account.", secret=True),
        Option(
            "tls-ca", "File with CA certificates; enables TLS and verifies the server."
        ),
    )


class _TLSConnection(pymysql.Connection):
    """Logs in over TLS only; PyMySQL would do without if the server offers none."""

    def _request_authentication(self) -> None:
        if not self.server_capabilities & CLIENT.SSL:  # type: ignore[attr-defined]
            message = "the server offers no TLS, which the option tls-ca asks for"
            raise pymysql.OperationalError(_NO_TLS, message)
        super()._request_authentication()  # type: ignore[misc]


class Connector:
    """Connects anew for each read, with one Connection object.

    PyMySQL loads the system's CA certificates for each new Connection object. This
    takes longer than all statements of a read.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._tls = tls_context(settings["tls_ca"])

    @cached_property
    def _connection(self) -> pymysql.Connection[Cursor]:
        """A connection object that is not open."""
        settings = self._settings
        kind = _TLSConnection if self._tls else pymysql.Connection
        return kind(
            host=settings["host"],
            port=settings["port"],
            unix_socket=settings["socket"],
            user=settings["user"],
            password=settings["password"] or "",
            database=settings.get("database"),
            ssl=self._tls,
            connect_timeout=max(1, round(settings["timeout"])),
            read_timeout=settings["timeout"],
            write_timeout=settings["timeout"],
            autocommit=None,
            defer_connect=True,
        )

    @contextmanager
    def cursor(self) -> Iterator[Cursor]:
        """Connect, yield a cursor, disconnect.

        Raises UnreachableError if the server is unreachable or refuses the account.
        """
        try:
            self._connect()
            with self._connection, self._connection.cursor() as cursor:
                yield cursor
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in _UNREACHABLE_CODES:
                raise UnreachableError(str(error)) from error
            raise

    def _connect(self) -> None:
        try:
            self._connection.connect()
        except pymysql.OperationalError:
            raise
        except Exception as error:
            # PyMySQL parses whatever it receives, so any server of another protocol
            # may raise anything.
            settings = self._settings
            where = settings["socket"] or f"{settings['host']}:{settings['port']}"
            message = f"there is no MySQL server at {where}: {error!r}"
            raise UnreachableError(message) from error
