"""A transaction that holds row locks."""

from collections.abc import Iterator

from keylag.faults.catalogue.locks import FREE_MS
from keylag.faults.changes.helper import Helper
from keylag.faults.model import DELETE, Change, Fault, Strength, uses
from keylag.faults.site import Site

TABLE = "revocation_event"


def _changes(_: Site, held_ms: float) -> Iterator[Change]:
    locks = {"table": TABLE, "held_ms": held_ms, "free_ms": FREE_MS}
    yield Helper("row-locks", locks)


FAULT = Fault(
    id="D4",
    name="locks",
    variant="transaction",
    summary="Log-outs wait for rows that a transaction has locked.",
    mechanism=(
        "A transaction locks all rows of `revocation_event` with `SELECT ... FOR "
        "UPDATE`, again and again with 100 ms between; InnoDB lets others read them, "
        "and lets nobody add one."
    ),
    slows=(DELETE,),
    strength=Strength(300, "ms of each transaction", 1, 10_000),
    uses=uses("the locks of the database"),
    changes=_changes,
)
