"""A database server without enough processor time."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.signals import MayBeSuspended
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

PERIOD_MS = 20


def _changes(_: Site, percent: float) -> Iterator[Change]:
    yield MayBeSuspended("mariadb")
    cycle = {"period_ms": PERIOD_MS, "stopped_share": percent / 100}
    yield Helper("duty-cycle", {"service": "mariadb", **cycle})


FAULT = Fault(
    id="D2",
    name="database-slow",
    variant="cpu",
    summary=(
        "Each statement takes longer in the server, as if it had too little "
        "processor time."
    ),
    mechanism=("The server gets SIGSTOP and SIGCONT in turn, in slices of 20 ms."),
    slows=(POST, GET),
    strength=Strength(80, "% of the time stopped", 1, 99),
    uses=uses(parts.DATABASE),
    changes=_changes,
)
