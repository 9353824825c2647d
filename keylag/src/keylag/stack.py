"""The stack: Keystone and the servers around it on 127.0.0.1, in one folder.

with Stack(folder, Tools.load(), StackOptions(cache="memcache_pool")) as stack:
    print(stack.url("keystone"), stack.admin().password)
"""

import os
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console

from keylag.datadir_cache import DatadirCache, cache_key, is_complete, mark_complete
from keylag.launcher import Launcher, StackError
from keylag.ports import allocate_ports
from keylag.services import SERVICES, require_programs, select_services
from keylag.services.base import Service, ServiceContext, StackOptions
from keylag.services.redis import CONNECTION_VARIABLE, HMAC_KEY_VARIABLE, traces_url
from keylag.stack_info import StackInfo
from keylag.stack_record import (
    StackRecord,
    generate_secrets,
    load_secrets,
    write_credentials,
)
from keylag.stack_shutdown import stop_services, stop_stack
from keylag.state import check_path, locked, state_folder
from keylag.steps import show_step
from keylag.tools import Tools

__all__ = ["InitialData", "Stack", "StackError", "StackOptions"]


@dataclass(frozen=True)
class InitialData:
    """How to fill the database of a new stack; the result is cached and copied.

    `key` identifies what `fill` does: change it whenever `fill` changes.  `fill`
    receives a stack that is up, and leaves all its services running.
    """

    key: str
    fill: Callable[["Stack"], None]


def _fill_nothing(_: "Stack") -> None:
    pass


def make_own_folder(path: Path) -> None:
    """Make a folder that nobody else can write to; raises StackError.

    That of sockets may be in /tmp, where others may have made it.
    """
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = path.lstat()
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not is_own or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        message = (
            f"{path} is not a folder of this user alone. Delete it, or choose a shorter"
            " path with --state."
        )
        raise StackError(message)


BOOTSTRAP_ONLY = InitialData("", _fill_nothing)
"""A Keystone as `keystone-manage bootstrap` leaves it."""


class Stack(StackInfo):
    """The servers of one folder; as a context manager it starts and stops them.

    `options` default to those of the last start.  `services` default to the usual
    ones and the extra ones that the options name.
    """

    def __init__(  # noqa: PLR0913 - all but two have good defaults
        self,
        folder: Path,
        tools: Tools,
        options: StackOptions | None = None,
        *,
        initial_data: InitialData | None = None,
        console: Console | None = None,
        services: Sequence[Service] | None = None,
        datadir_cache: DatadirCache | None = None,
    ) -> None:
        super().__init__(folder, services or ())
        self.tools = tools
        self._initial_data = initial_data
        self._console = console or Console(quiet=True)
        self._datadir_cache = datadir_cache or DatadirCache(state_folder() / "prepared")
        self._options = options or self._record.options

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()

    @property
    def options(self) -> StackOptions:
        """The options of the running Keystone, or of its next start."""
        return self._options

    def log(self, service: str) -> Path:
        """Return the path of a service's log."""
        return self.context().log(service)

    def up(
        self, initial_data: InitialData | None = None, *, new_ports: bool = False
    ) -> None:
        """Start the stack and wait until all services are healthy.

        `initial_data`, here or at construction, determines the contents of the
        database; without it the data of the folder stays.  Healthy services keep
        running; Keystone restarts if its options have changed.  `new_ports` restarts
        all services on other ports.

        If a service does not start, or after Ctrl-C, the whole stack is stopped.
        Raises StackError if a service does not start, PathError for a path that some
        program cannot use, PortTakenError if another process uses a port of the stack,
        and ToolError if the program of an extra service is missing.
        """
        initial_data = initial_data or self._initial_data
        check_path(self.folder)
        require_programs(self._options.extras)
        with self._locked():
            if new_ports:
                self._start_all(initial_data, {})
            elif not (
                self._has_requested_services()
                and self.is_up()
                and self._has_data(initial_data)
            ):
                self._start_all(initial_data, self.ports)
            elif self._options != self._record.options:
                self._restart(("keystone",))

    def down(self) -> list[str]:
        """Stop all processes of the stack; return the names of the stopped services."""
        return stop_stack(self.folder, self._services or SERVICES)

    def restart(self, *names: str, options: StackOptions | None = None) -> None:
        """Restart services; `options` are Keystone's new options.

        Memcached restarts together with Keystone, so the cache is empty.  Raises
        StackError as `up` does.
        """
        with self._locked():
            self._options = options or self._options
            self._restart(names)

    def _has_requested_services(self) -> bool:
        names = tuple(service.name for service in self._services)
        extras = self._record.options.extras
        return self._options.extras == extras and names in {(), self._record.services}

    def _start_all(
        self, initial_data: InitialData | None, before: Mapping[str, int]
    ) -> None:
        stop_services(self.folder, self._services or SERVICES)
        services = self._services or select_services(self._options.extras)
        names = [name for service in services for name in service.ports]
        ports = allocate_ports(names, before)
        started = tuple(service.name for service in services)
        self._save_record(StackRecord(ports, self._options, started))
        if not self._has_data(initial_data):
            self._restore_or_make_data(initial_data or BOOTSTRAP_ONLY)
        self._start(self.services)
        if "keystone" in names:
            write_credentials(self.folder, self.admin(), self._tracing_variables())

    def _tracing_variables(self) -> dict[str, str]:
        """Return the variables with which clients have their requests traced."""
        if "redis" not in self._record.ports:
            return {}
        return {
            HMAC_KEY_VARIABLE: load_secrets(self.data).profiler,
            CONNECTION_VARIABLE: traces_url(self.port("redis")),
        }

    def _restart(self, names: Sequence[str]) -> None:
        self._save_record(replace(self._record, options=self._options))
        named = [service for service in self.services if service.name in names]
        all_names = {
            *names,
            *(name for service in named for name in service.restart_with),
        }
        renewed = [service for service in self.services if service.name in all_names]
        stop_services(self.folder, renewed)
        self._start(renewed)

    def _has_data(self, initial_data: InitialData | None) -> bool:
        name = cache_key((initial_data or BOOTSTRAP_ONLY).key, self.tools)
        return is_complete(self.data, name, any_initial_data=initial_data is None)

    def _restore_or_make_data(self, initial_data: InitialData) -> None:
        if self.data.exists():
            self._console.print(
                "Replacing the database: it is incomplete, of another version of"
                " Keylag or MariaDB, or of another sample cloud."
            )
        name = cache_key(initial_data.key, self.tools)
        with self._datadir_cache.locked():
            if not self._datadir_cache.restore(name, self.data):
                self._make_data(name, initial_data)

    def _make_data(self, name: str, initial_data: InitialData) -> None:
        self._console.print("Creating the database. The next start reuses a copy.")
        bare = cache_key(BOOTSTRAP_ONLY.key, self.tools)
        if not self._datadir_cache.restore(bare, self.data):
            shutil.rmtree(self.data, ignore_errors=True)
            self.data.mkdir(mode=0o700)
            generate_secrets(self.data)
        self._start([one for one in self.services if not one.observes_only])
        try:
            with show_step(self._console, "Filling the database"):
                initial_data.fill(self)
        finally:
            stop_services(self.folder, self.services)
        mark_complete(self.data, name)
        self._datadir_cache.save(name, self.data)

    def _start(self, services: Sequence[Service]) -> None:
        make_own_folder(self.context().socket_folder)
        try:
            Launcher(self.context(), self._console).start(services)
        except BaseException:
            stop_services(self.folder, self.services)
            raise

    def _save_record(self, record: StackRecord) -> None:
        self._record = record
        record.save(self.folder)

    def context(self) -> ServiceContext:
        """Return what the services of the stack run with."""
        return ServiceContext(
            folder=self.folder,
            tools=self.tools,
            options=self._options,
            ports=self._record.ports,
            secrets=load_secrets(self.data),
        )

    def _locked(self) -> AbstractContextManager[None]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return locked(self.folder / ".lock")
