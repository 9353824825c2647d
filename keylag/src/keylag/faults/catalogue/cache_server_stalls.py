"""A memcached without enough processor time."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.duty_cycle import suspend_in_slices
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

PERIOD_MS = 40


def _changes(_: Site, percent: float) -> Iterator[Change]:
    return suspend_in_slices("memcached", PERIOD_MS, percent)


FAULT = Fault(
    id="C2",
    name="cache-server-hung",
    variant="stalls",
    summary=(
        "Some calls to memcached wait for milliseconds, as if it had too little "
        "processor time."
    ),
    mechanism=(
        f"memcached gets SIGSTOP and SIGCONT in turn, in slices of {PERIOD_MS} ms."
    ),
    slows=(POST, GET),
    strength=Strength(50, "% of the time stopped", 1, 99),
    uses=uses(parts.CACHE),
    needs=(parts.CACHED,),
    changes=_changes,
)
