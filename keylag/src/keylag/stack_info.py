"""Read-only view of a stack folder: addresses, credentials and health.

stack = StackInfo(Path(".keylag/stack"))
print(stack.url("keystone"), stack.admin().password)
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from keylag.errors import KeylagError
from keylag.services.base import HOST, Ports, Service, StackOptions
from keylag.stack_record import AdminCredentials, StackRecord, load_secrets
from keylag.status import ServiceStatus, recorded_services, stack_status

LOG = logging.getLogger(__name__)


class StackDownError(KeylagError):
    """The stack's Keystone does not run."""


class StackInfo:
    """A stack folder; reading it needs none of the stack's programs.

    `services` replace the known services, for tests.
    """

    def __init__(self, folder: Path, services: Sequence[Service] = ()) -> None:
        self.folder = folder.resolve()
        self._services = services
        self._record = StackRecord.load(self.folder)

    @property
    def options(self) -> StackOptions:
        """The options of Keystone at its last start."""
        return self._record.options

    @property
    def services(self) -> Sequence[Service]:
        """The services of the last start, in the order they start."""
        return recorded_services(self._record, self._services)

    @property
    def data(self) -> Path:
        """The folder with database, keys and passwords."""
        return self.folder / "data"

    @property
    def ports(self) -> Ports:
        """All ports by name."""
        return self._record.ports

    def port(self, name: str) -> int:
        """Return a port; the first port of a service has the service's name."""
        return self._record.ports[name]

    def url(self, name: str) -> str:
        """Return http://127.0.0.1:PORT, without a path."""
        return f"http://{HOST}:{self.port(name)}"

    def admin(self) -> AdminCredentials:
        """Return the administrator's credentials."""
        url = f"{self.url('keystone')}/v3"
        return AdminCredentials(auth_url=url, password=load_secrets(self.data).admin)

    def status(self) -> list[ServiceStatus]:
        """Return the status of each service, in the order they start."""
        return stack_status(self.folder, self._services)

    def is_up(self) -> bool:
        """Return whether all services are healthy."""
        return not self.unhealthy_services()

    def unhealthy_services(self) -> list[ServiceStatus]:
        """Return the status of each service that is not healthy."""
        return [one for one in self.status() if not one.healthy]

    def require_keystone(self, instead: str) -> None:
        """Log a warning for each unhealthy service; Keystone at least has to run.

        Raises StackDownError otherwise; `instead` names an alternative for users.
        """
        statuses = self.status()
        if not any(one.service == "keystone" and one.pid for one in statuses):
            message = (
                f"No stack runs in {self.folder}. Start one with `keylag up`, "
                f"or {instead}."
            )
            raise StackDownError(message)
        for one in statuses:
            if not one.healthy:
                LOG.warning("Warning: %s `keylag up` restarts the stack.", one)
