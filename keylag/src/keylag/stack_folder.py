"""A stack as its folder tells: addresses, passwords, and how its servers are.

stack = StackFolder(Path(".keylag/stack"))
print(stack.url("keystone"), stack.admin().password)
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from keylag.errors import KeylagError
from keylag.record import Admin, Record, load_secrets
from keylag.services.base import HOST, Ports, Service, StackOptions
from keylag.status import ProcessStatus, services_of, stack_status

LOG = logging.getLogger(__name__)


class StackDownError(KeylagError):
    """Keystone does not run; the text says how to start one."""


class StackFolder:
    """What can be known of a stack without the programs that it was started from."""

    def __init__(self, folder: Path, known: Sequence[Service] = ()) -> None:
        self.folder = folder.resolve()
        self._known = known
        self._record = Record.load(self.folder)

    @property
    def options(self) -> StackOptions:
        """What Keystone runs with."""
        return self._record.options

    @property
    def services(self) -> Sequence[Service]:
        """What it was started with, whatever programs there are by now."""
        return services_of(self._record, self._known)

    @property
    def data(self) -> Path:
        """The folder of database, keys and passwords."""
        return self.folder / "data"

    @property
    def ports(self) -> Ports:
        """All ports by their names."""
        return self._record.ports

    def port(self, name: str) -> int:
        """Return a port by its name; a service's first port has its own name."""
        return self._record.ports[name]

    def url(self, name: str) -> str:
        """Return http://127.0.0.1:port, without a path."""
        return f"http://{HOST}:{self.port(name)}"

    def admin(self) -> Admin:
        """Return the administrator's credentials."""
        url = f"{self.url('keystone')}/v3"
        return Admin(auth_url=url, password=load_secrets(self.data).admin)

    def status(self) -> list[ProcessStatus]:
        """Return how each service is, in the order they start."""
        return stack_status(self.folder, self._known)

    def is_up(self) -> bool:
        """Tell whether every service runs and answers."""
        return not self.sick()

    def sick(self) -> list[ProcessStatus]:
        """Return the services that do not answer."""
        return [one for one in self.status() if not one.healthy]

    def require_keystone(self, instead: str) -> None:
        """Log a warning for each sick server, as long as Keystone runs.

        Raises StackDownError if it does not; `instead` says what else to do then.
        """
        statuses = self.status()
        if not any(one.service == "keystone" and one.pid for one in statuses):
            message = (
                f"No stack is up in {self.folder}. Start one with `keylag up`, "
                f"or {instead}."
            )
            raise StackDownError(message)
        for one in statuses:
            if not one.healthy:
                LOG.warning("Warning: %s `keylag up` starts all of it afresh.", one)
