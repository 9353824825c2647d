"""A memcached without enough processor time."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.signals import MayBeSuspended
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

PERIOD_MS = 40


def _changes(_: Site, percent: float) -> Iterator[Change]:
    yield MayBeSuspended("memcached")
    cycle = {"period_ms": PERIOD_MS, "stopped_share": percent / 100}
    yield Helper("duty-cycle", {"service": "memcached", **cycle})


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
