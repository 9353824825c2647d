"""Too few workers."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, processes: float) -> Iterator[Change]:
    yield Options(processes=round(processes), threads=1)


FAULT = Fault(
    id="W1",
    name="workers",
    summary="Calls wait for a free worker.",
    mechanism=(
        "Keystone restarts with fewer processes than calls that arrive at a time."
    ),
    slows=(POST, GET),
    strength=Strength(1, "processes", 1, 64),
    uses=uses(parts.PROCESSES),
    clients=6,
    changes=_changes,
)
