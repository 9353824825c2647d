"""The native stack: real servers on 127.0.0.1, in a folder of their own.

with Stack(folder, Tools.load(), StackOptions(cache="memcache_pool")) as stack:
    print(stack.url("keystone"), stack.admin().password)
"""

import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console

from keylag.launch import Launch, StackError
from keylag.prepared import BARE, Prepared, Store, digest, holds, mark_whole
from keylag.record import (
    Admin,
    Record,
    free_ports,
    load_secrets,
    make_secrets,
    write_credentials,
)
from keylag.services import SERVICES, chosen, find_programs
from keylag.services.base import HOST, Service, Site, StackOptions
from keylag.services.redis import KEY_VARIABLE, PLACE_VARIABLE, traces_url
from keylag.state import locked, state_folder
from keylag.status import ProcessStatus, stack_status
from keylag.teardown import stop_found, stop_stack
from keylag.tools import Tools

__all__ = ["Admin", "Prepared", "ProcessStatus", "Stack", "StackError", "StackOptions"]


class Stack:
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
        self.folder = folder.resolve()
        self.tools = tools
        self._given = services
        self._known = services or SERVICES
        self._prepared = prepared
        self._console = console or Console(quiet=True)
        self._store = store or Store(state_folder() / "prepared")
        self._record = Record.load(self.folder)
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

    @property
    def data(self) -> Path:
        """The folder of database, keys and passwords."""
        return self.folder / "data"

    def port(self, name: str) -> int:
        """Return a port by its name; a service's first port has its own name."""
        return self._record.ports[name]

    def url(self, name: str) -> str:
        """Return http://127.0.0.1:port, without a path."""
        return f"http://{HOST}:{self.port(name)}"

    def log(self, service: str) -> Path:
        """Return the log of a service."""
        return self._site().log(service)

    def admin(self) -> Admin:
        """Return the administrator's credentials."""
        url = f"{self.url('keystone')}/v3"
        return Admin(auth_url=url, password=load_secrets(self.data).admin)

    def up(self, prepared: Prepared | None = None) -> None:
        """Start the stack and wait until all of it answers.

        The data is what `prepared` says, here or at construction; without it, what
        the folder has.  What is
        up already stays up, but for Keystone if it is to have other options.
        Raises StackError if a service does not start; then, as after Ctrl-C, the
        whole stack is stopped.  Raises ToolError if an extra service has no program.
        """
        prepared = prepared or self._prepared
        find_programs(self._options.extras)
        with self._locked():
            same = self._options.extras == self._record.options.extras
            if not (same and self.is_up() and self._has_data(prepared)):
                self._up_afresh(prepared)
            elif self._options != self._record.options:
                self._restart(("keystone",))

    def down(self) -> list[str]:
        """Stop every process of the stack; returns the services that ran."""
        return stop_stack(self.folder, self._known)

    def restart(self, *names: str, options: StackOptions | None = None) -> None:
        """Restart services, Keystone perhaps with other options.

        With Keystone goes memcached, so that the cache is empty.  Raises StackError
        as `up` does.
        """
        with self._locked():
            self._options = options or self._options
            self._restart(names)

    def is_up(self) -> bool:
        """Tell whether every service runs and answers."""
        return all(status.healthy for status in self.status())

    def status(self) -> list[ProcessStatus]:
        """Return how each service is, in the order they start."""
        return stack_status(self.folder, self._given)

    @property
    def _services(self) -> Sequence[Service]:
        return self._given or chosen(self._options.extras)

    def _up_afresh(self, prepared: Prepared | None) -> None:
        stop_found(self.folder, self._known)
        names = [name for service in self._services for name in service.ports]
        self._remember(Record(free_ports(names, self._record.ports), self._options))
        if not self._has_data(prepared):
            self._provide_data(prepared or BARE)
        self._start(self._services)
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
        self._remember(Record(self._record.ports, self._options))
        named = [service for service in self._services if service.name in names]
        all_names = {*names, *(name for service in named for name in service.renews)}
        chosen = [service for service in self._services if service.name in all_names]
        stop_found(self.folder, chosen)
        self._start(chosen)

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
        self._start([one for one in self._services if not one.watches])
        try:
            prepared.fill(self)
        finally:
            stop_found(self.folder, self._known)
        mark_whole(self.data, name)
        self._store.save(name, self.data)

    def _start(self, services: Sequence[Service]) -> None:
        self._site().run.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            Launch(self._site(), self._console).start(services)
        except BaseException:
            stop_found(self.folder, self._known)
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
