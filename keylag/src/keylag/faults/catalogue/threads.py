"""Threads instead of processes."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, threads: float) -> Iterator[Change]:
    yield Options(processes=1, threads=round(threads))


FAULT = Fault(
    id="W3",
    name="threads",
    summary="Calls share one process, and with it one GIL.",
    mechanism="Keystone restarts with one process and several threads.",
    slows=(POST, GET),
    strength=Strength(8, "threads", 2, 64),
    uses=uses(parts.PROCESSES),
    clients=8,
    changes=_changes,
)
