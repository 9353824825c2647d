"""A database server without enough processor time."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.duty_cycle import suspend_in_slices
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

PERIOD_MS = 20


def _changes(_: Site, percent: float) -> Iterator[Change]:
    return suspend_in_slices("mariadb", PERIOD_MS, percent)


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
