"""A database on a slow disk."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.limited import WRITES, Limited
from keylag.faults.model import DELETE, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, writes: float) -> Iterator[Change]:
    yield Limited("mariadb", WRITES, round(writes))


FAULT = Fault(
    id="D2",
    name="database-slow",
    variant="disk",
    summary="Each commit waits for a slow disk.",
    mechanism="A control group limits the writes of the database server to its disk.",
    slows=(DELETE,),
    strength=Strength(20, WRITES, 1, 100_000),
    uses=uses(parts.DATABASE),
    changes=_changes,
)
