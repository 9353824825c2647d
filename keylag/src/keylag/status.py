"""How the services of a stack are; needs no tools, only the folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keylag import processes
from keylag.record import Record
from keylag.services import SERVICES, chosen
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

    def __str__(self) -> str:
        """Say it in a sentence."""
        how = f"(pid {self.pid}) does not answer" if self.pid else "does not run"
        return f"{self.service} {'answers' if self.healthy else how}; see {self.log}."


def services_of(record: Record, known: Sequence[Service] = ()) -> Sequence[Service]:
    """Return the services that a stack was started with, in the order they start.

    Without a start these are the ones it would start with: `known`, or the usual ones.
    """
    if not record.services:
        return known or chosen(record.options.extras)
    return [one for one in known or SERVICES if one.name in record.services]


def stack_status(folder: Path, known: Sequence[Service] = ()) -> list[ProcessStatus]:
    """Return how each service of a stack is, in the order they start."""
    folder = folder.resolve()
    found = processes.roots(processes.find(stack=folder))
    pids = {mark.service: mark.process.pid for mark in found}
    record = Record.load(folder)
    return [
        _status(service, pids.get(service.name), record.ports, folder)
        for service in services_of(record, known)
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
