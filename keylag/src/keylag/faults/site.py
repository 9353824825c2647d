"""What changes need to work on: a stack that Keylag started, and its journal."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
import pymysql
from rich.console import Console

from keylag import processes
from keylag.faults.changes.limited import Limited
from keylag.faults.changes.options import Options
from keylag.faults.changes.signals import Stopped, Suspended
from keylag.faults.journal import Journal
from keylag.faults.model import FaultError
from keylag.ports import free_port
from keylag.processes import StackProcess, stack_variables
from keylag.services.base import (
    HOST,
    Ports,
    Secrets,
    StackOptions,
    socket_folder,
)
from keylag.services.galera import administrator
from keylag.services.mariadb import database_url_at, server_version
from keylag.stack import Stack
from keylag.stack_database import connect
from keylag.stack_record import StackRecord, load_secrets
from keylag.tools import Tools

_SERVICE_FIELDS = {
    "mariadb": "mariadb",
    "service": "service",
    "second_node": "second-node",
}
"""Options that concern one service; the others concern Keystone and memcached."""
_ADMIN = "admin"
JOIN_SECONDS = 30.0
"""How long a Galera node may take to join its cluster."""
POLL_SECONDS = 0.1
HERE_ONLY = (
    # First, it gets what the other node has written.
    "SET SESSION wsrep_sync_wait = 15",
    "SELECT 1",
    "SET SESSION wsrep_sync_wait = 0",
    "SET SESSION wsrep_on = OFF",
)
"""Statements after which the others concern one Galera node."""
SYNCED = """\
SELECT 1 FROM information_schema.global_status
WHERE variable_name = 'wsrep_local_state' AND variable_value = '4'"""


class Site:
    """A stack's folder with its faults.

    `restarts` is False for a stack that is about to stop: then other options are only
    recorded.
    """

    def __init__(
        self, folder: Path, console: Console, stack: Stack | None = None
    ) -> None:
        self.folder = folder.resolve()
        self.console = console
        self.journal = Journal(self.folder)
        self.restarts = True
        self._given_ports: list[int] = []
        if stack is not None:
            self.stack = stack

    @cached_property
    def stack(self) -> Stack:
        """The stack; raises ToolError if a program is missing."""
        return Stack(self.folder, Tools.load())

    @property
    def record(self) -> StackRecord:
        """The record of the last start."""
        return StackRecord.load(self.folder)

    @property
    def options(self) -> StackOptions:
        """The options of the last start."""
        return self.record.options

    @property
    def ports(self) -> Ports:
        """The ports of the stack by name."""
        return self.record.ports

    @property
    def secrets(self) -> Secrets:
        """The passwords of the stack."""
        return load_secrets(self.folder / "data")

    @property
    def fernet_keys(self) -> Path:
        """The stack's own key repository."""
        return self.folder / "data" / "keystone" / "fernet-keys"

    def address(self, port: str) -> str:
        """Return HOST:PORT for a port by name."""
        return f"{HOST}:{self.ports[port]}"

    def free_address(self) -> str:
        """Return HOST:PORT of a port that is free."""
        port = free_port([*self.ports.values(), *self._given_ports])
        self._given_ports.append(port)
        return f"{HOST}:{port}"

    def environment(self, name: str) -> dict[str, str]:
        """Return the environment of a process of this stack."""
        return {**os.environ, **stack_variables(self.folder, name)}

    def processes(self, name: str) -> list[StackProcess]:
        """Return the processes of a service or helper of this stack."""
        return processes.find_processes(stack=self.folder, service=name)

    def resume(self, service: str) -> None:
        """Let a suspended service continue."""
        for one in self.processes(service):
            with suppress(psutil.Error):
                one.process.resume()

    # Options and restarts

    def apply_options(self) -> None:
        """Give the stack the options that the journal asks for; restarts services."""
        base = self.journal.base or self.options
        wanted = base
        for change in self.journal.changes():
            if isinstance(change, Options):
                wanted = change.on_top_of(wanted)
        names = _concerned_services(self.options, wanted)
        if names and self.restarts:
            self.restart(*names, options=wanted)
        elif names:
            replace(self.record, options=wanted).save(self.folder)

    def restart(self, *names: str, options: StackOptions | None = None) -> None:
        """Restart services, then suspend, stop and limit again what faults have.

        Raises StackError.
        """
        held = [
            one
            for one in self.journal.changes()
            if isinstance(one, Suspended | Stopped | Limited)
        ]
        for change in held:
            self.resume(change.service)
        self.stack.restart(*names, options=options)
        for change in held:
            change.apply(self)

    # The database

    def database_url(self, address: str) -> str:
        """Return the SQLAlchemy URL of Keystone's database at another address."""
        return database_url_at(address, self.secrets.database)

    def execute(self, statements: Sequence[str]) -> None:
        """Run statements as Keystone's account; raises pymysql.Error."""
        with self._cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each row of values; raises pymysql.Error."""
        with self._cursor() as cursor:
            cursor.executemany(statement, rows)

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; raises pymysql.Error."""
        with self._cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        if not server_version(self.ports["mariadb"]):
            # After a crash, what is in the database is taken back in the database.
            self.stack.restart("mariadb")
        connection = connect(self.folder)
        with closing(connection), connection.cursor() as cursor:
            yield cursor

    def administer_proxysql(self, statements: Sequence[str]) -> None:
        """Run statements at ProxySQL's administration; raises pymysql.Error."""
        connection = pymysql.connect(
            host=HOST,
            port=self.ports["proxysql-admin"],
            user=_ADMIN,
            password=self.secrets.proxysql,
            autocommit=True,
        )
        with closing(connection), connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def administer_second_node(self, statements: Sequence[str]) -> None:
        """Run statements at the second node of a Galera cluster, and only there.

        Returns when it is in the cluster again.  Raises pymysql.Error, and FaultError
        if it stays outside.
        """
        connection = pymysql.connect(
            unix_socket=str(socket_folder(self.folder) / "galera.sock"),
            user=administrator(),
            database="keystone",
            autocommit=True,
        )
        with closing(connection), connection.cursor() as cursor:
            for statement in (*HERE_ONLY, *statements):
                cursor.execute(statement)
            deadline = time.monotonic() + JOIN_SECONDS
            while not cursor.execute(SYNCED):
                if time.monotonic() > deadline:
                    message = "The second database node did not join the cluster."
                    raise FaultError(message)
                time.sleep(POLL_SECONDS)


def _concerned_services(before: StackOptions, after: StackOptions) -> set[str]:
    concerned = {
        service
        for name, service in _SERVICE_FIELDS.items()
        if getattr(before, name) != getattr(after, name)
    }
    own = {name: getattr(after, name) for name in _SERVICE_FIELDS}
    if replace(before, **own) != after:
        concerned.add("keystone")
    return concerned
