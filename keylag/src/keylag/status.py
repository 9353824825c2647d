"""The status of a stack's services, from its folder and its processes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keylag import processes
from keylag.services import SERVICES, select_services
from keylag.services.base import Ports, Service
from keylag.stack_record import StackRecord


@dataclass(frozen=True)
class ServiceStatus:
    """The status of one service of a stack."""

    service: str
    pid: int | None
    """Process id of its main process; None if it does not run."""
    ports: dict[str, int]
    healthy: bool
    """Whether it runs and answers over its own protocol."""
    log: Path

    def __str__(self) -> str:
        """Return a sentence with service, status and log."""
        problem = f"(pid {self.pid}) does not answer" if self.pid else "does not run"
        status = "answers" if self.healthy else problem
        return f"{self.service} {status}. Its log: {self.log}."


def recorded_services(
    record: StackRecord, known: Sequence[Service] = ()
) -> Sequence[Service]:
    """Return the services of a stack's last start, in the order they start.

    Before the first start these are `known`, or the usual services.
    """
    if not record.services:
        return known or select_services(record.options.extras)
    return [one for one in known or SERVICES if one.name in record.services]


def stack_status(folder: Path, known: Sequence[Service] = ()) -> list[ServiceStatus]:
    """Return the status of each service of a stack, in the order they start."""
    folder = folder.resolve()
    found = processes.without_children(processes.find_processes(stack=folder))
    pids = {one.service: one.process.pid for one in found}
    record = StackRecord.load(folder)
    return [
        _service_status(service, pids.get(service.name), record.ports, folder)
        for service in recorded_services(record, known)
    ]


def _service_status(
    service: Service, pid: int | None, ports: Ports, folder: Path
) -> ServiceStatus:
    own = {name: ports[name] for name in service.ports if name in ports}
    return ServiceStatus(
        service=service.name,
        pid=pid,
        ports=own,
        healthy=pid is not None and len(own) > 0 and service.healthy(ports),
        log=folder / "logs" / f"{service.name}.log",
    )
