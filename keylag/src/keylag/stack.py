"""The native stack: real servers on 127.0.0.1, in a folder of their own.

with Stack(folder, Tools.load(), StackOptions(cache="memcache_pool")) as stack:
    print(stack.url("keystone"), stack.admin().password)
"""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console

from keylag.launch import Launch, StackError
from keylag.ports import keep_ports
from keylag.prepared import BARE, Prepared, Store, digest, holds, mark_whole
from keylag.record import (
    Admin,
    Record,
    load_secrets,
    make_secrets,
    write_credentials,
)
from keylag.services import SERVICES, chosen, find_programs
from keylag.services.base import Service, Site, StackOptions
from keylag.services.redis import KEY_VARIABLE, PLACE_VARIABLE, traces_url
from keylag.stack_folder import StackFolder
from keylag.state import check_path, locked, state_folder
from keylag.status import ProcessStatus
from keylag.teardown import stop_found, stop_stack
from keylag.tools import Tools

__all__ = ["Admin", "Prepared", "ProcessStatus", "Stack", "StackError", "StackOptions"]


class Stack(StackFolder):
    """The servers of one folder; `with` starts them and stops them.

    Without `options` it is what the folder was last started with; without
    `services` it has the usual ones and the extra ones of the options.
    """

    def __init__(  # noqa: PLR0913 - all but two have good defaults
        self,
        folder: Path,
        tools: Tools,
        options: StackOptions | None = None,
        *,
        prepared: Prepared | None = None,
        console: Console | None = None,
        services: Sequence[Service] | None = None,
        store: Store | None = None,
    ) -> None:
        super().__init__(folder, services or ())
        self.tools = tools
        self._prepared = prepared
        self._console = console or Console(quiet=True)
        self._store = store or Store(state_folder() / "prepared")
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
        """What Keystone runs with, or will when it starts."""
        return self._options

    def log(self, service: str) -> Path:
        """Return the log of a service."""
        return self._site().log(service)

    def up(self, prepared: Prepared | None = None, *, new_ports: bool = False) -> None:
        """Start the stack and wait until all of it answers.

        The data is what `prepared` says, here or at construction; without it, what
        the folder has.  What is
        up already stays up, but for Keystone if it is to have other options.
        With `new_ports` all of it starts afresh, on other ports.

        Raises StackError if a service does not start; then, as after Ctrl-C, the
        whole stack is stopped.  Raises PathError if a program could not use the
        folder's path, PortTakenError if another process has a port
        of the stack, and ToolError if an extra service has no program.
        """
        prepared = prepared or self._prepared
        check_path(self.folder)
        find_programs(self._options.extras)
        with self._locked():
            if new_ports:
                self._up_afresh(prepared, {})
            elif not (self._is_same() and self.is_up() and self._has_data(prepared)):
                self._up_afresh(prepared, self.ports)
            elif self._options != self._record.options:
                self._restart(("keystone",))

    def down(self) -> list[str]:
        """Stop every process of the stack; returns the services that ran."""
        return stop_stack(self.folder, self._known or SERVICES)

    def restart(self, *names: str, options: StackOptions | None = None) -> None:
        """Restart services, Keystone perhaps with other options.

        With Keystone goes memcached, so that the cache is empty.  Raises StackError
        as `up` does.
        """
        with self._locked():
            self._options = options or self._options
            self._restart(names)

    def _is_same(self) -> bool:
        """Tell whether it was last started with the services that are asked for."""
        names = tuple(service.name for service in self._known)
        extras = self._record.options.extras
        return self._options.extras == extras and names in {(), self._record.services}

    def _up_afresh(self, prepared: Prepared | None, before: Mapping[str, int]) -> None:
        stop_found(self.folder, self._known or SERVICES)
        services = self._known or chosen(self._options.extras)
        names = [name for service in services for name in service.ports]
        ports = keep_ports(names, before)
        started = tuple(service.name for service in services)
        self._remember(Record(ports, self._options, started))
        if not self._has_data(prepared):
            self._provide_data(prepared or BARE)
        self._start(self.services)
        if "keystone" in names:
            write_credentials(self.folder, self.admin(), self._tracing())

    def _tracing(self) -> dict[str, str]:
        """Return the variables by which a client has its requests traced."""
        if "redis" not in self._record.ports:
            return {}
        return {
            KEY_VARIABLE: load_secrets(self.data).profiler,
            PLACE_VARIABLE: traces_url(self.port("redis")),
        }

    def _restart(self, names: Sequence[str]) -> None:
        self._remember(replace(self._record, options=self._options))
        named = [service for service in self.services if service.name in names]
        all_names = {*names, *(name for service in named for name in service.renews)}
        renewed = [service for service in self.services if service.name in all_names]
        stop_found(self.folder, renewed)
        self._start(renewed)

    def _has_data(self, prepared: Prepared | None) -> bool:
        name = digest((prepared or BARE).key, self.tools)
        return holds(self.data, name, however_filled=prepared is None)

    def _provide_data(self, prepared: Prepared) -> None:
        """Copy the data, or make it if nobody has made it yet."""
        name = digest(prepared.key, self.tools)
        with self._store.locked():
            if not self._store.restore(name, self.data):
                self._make_data(name, prepared)

    def _make_data(self, name: str, prepared: Prepared) -> None:
        """Make the data the slow way, and keep a copy for the next time."""
        self._console.print("Preparing the database; this is done once.")
        bare = digest(BARE.key, self.tools)
        if not self._store.restore(bare, self.data):
            shutil.rmtree(self.data, ignore_errors=True)
            self.data.mkdir(mode=0o700)
            make_secrets(self.data)
        self._start([one for one in self.services if not one.watches])
        try:
            prepared.fill(self)
        finally:
            stop_found(self.folder, self.services)
        mark_whole(self.data, name)
        self._store.save(name, self.data)

    def _start(self, services: Sequence[Service]) -> None:
        self._site().run.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            Launch(self._site(), self._console).start(services)
        except BaseException:
            stop_found(self.folder, self.services)
            raise

    def _remember(self, record: Record) -> None:
        self._record = record
        record.save(self.folder)

    def _site(self) -> Site:
        return Site(
            folder=self.folder,
            tools=self.tools,
            options=self._options,
            ports=self._record.ports,
            secrets=load_secrets(self.data),
        )

    def _locked(self) -> AbstractContextManager[None]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return locked(self.folder / ".lock")
