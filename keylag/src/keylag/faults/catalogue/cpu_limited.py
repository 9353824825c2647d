"""Keystone in a container with too low a CPU limit."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.limited import CPU, PERIOD_US, Limited
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, cpus: float) -> Iterator[Change]:
    yield Limited("keystone", CPU, round(cpus * PERIOD_US))


FAULT = Fault(
    id="W2",
    name="cpu-starved",
    variant="limit",
    summary="Keystone's workers are stopped again and again by their CPU limit.",
    mechanism="A control group limits the CPU time of Keystone, as containers do.",
    slows=(POST, GET),
    strength=Strength(0.4, "CPUs", 0.02, 64),
    uses=uses(parts.PROCESSES),
    changes=_changes,
)
