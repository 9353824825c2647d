"""Connections that are not reused."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, seconds: float) -> Iterator[Change]:
    option = {"OS_DATABASE__CONNECTION_RECYCLE_TIME": f"{seconds:.0f}"}
    yield Options(environment=option)


FAULT = Fault(
    id="D6",
    name="connects",
    summary="Keystone opens new connections to the database all the time.",
    mechanism=(
        "Keystone restarts with a short `[database] connection_recycle_time`; 0 "
        "opens one for each use."
    ),
    slows=(POST, GET),
    strength=Strength(0, "s that a connection is used", 0, 3600),
    uses=uses(parts.CONNECTIONS),
    changes=_changes,
)
