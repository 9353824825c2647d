"""How the services of a stack are; needs no tools, only the folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keylag import processes
from keylag.record import Record
from keylag.services import chosen
from keylag.services.base import Ports, Service


@dataclass(frozen=True)
class ProcessStatus:
    """How one service of a stack is."""

    service: str
    pid: int | None
    """Of its first process; None if it does not run."""
    ports: dict[str, int]
    healthy: bool
    """It runs, and it answers over its own protocol."""
    log: Path


def stack_status(
    folder: Path, services: Sequence[Service] | None = None
) -> list[ProcessStatus]:
    """Return how each service is, in the order they start.

    Without `services` these are the ones that the stack was last started with.
    """
    folder = folder.resolve()
    found = processes.roots(processes.find(stack=folder))
    pids = {mark.service: mark.process.pid for mark in found}
    record = Record.load(folder)
    return [
        _status(service, pids.get(service.name), record.ports, folder)
        for service in services or chosen(record.options.extras)
    ]


def _status(
    service: Service, pid: int | None, ports: Ports, folder: Path
) -> ProcessStatus:
    own = {name: ports[name] for name in service.ports if name in ports}
    return ProcessStatus(
        service=service.name,
        pid=pid,
        ports=own,
        healthy=pid is not None and len(own) > 0 and service.healthy(ports),
        log=folder / "logs" / f"{service.name}.log",
    )
