"""Locked tables."""

from collections.abc import Iterator

from keylag.faults.changes.helper import Helper
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

TABLES = ("user", "revocation_event")
FREE_MS = 100


def _changes(_: Site, held_ms: float) -> Iterator[Change]:
    locks = {"tables": TABLES, "held_ms": held_ms, "free_ms": FREE_MS}
    yield Helper("table-locks", locks)


FAULT = Fault(
    id="D4",
    name="locks",
    summary="Statements wait for locks that another connection holds.",
    mechanism=(
        "A connection holds `LOCK TABLES ... WRITE` on the tables `user` and "
        "`revocation_event`, again and again with 100 ms between."
    ),
    slows=(POST, GET),
    strength=Strength(300, "ms of each lock", 1, 10_000),
    uses=uses("the locks of the database"),
    changes=_changes,
)
