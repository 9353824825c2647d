"""A connection pool that is smaller than the threads need."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, connections: float) -> Iterator[Change]:
    pool = {
        "OS_DATABASE__MAX_POOL_SIZE": f"{connections:.0f}",
        "OS_DATABASE__MAX_OVERFLOW": "0",
    }
    yield Options(environment=pool)


FAULT = Fault(
    id="D5",
    name="pool-exhausted",
    summary="Keystone's threads wait for a connection of the pool.",
    mechanism=(
        "Keystone restarts with a small `[database] max_pool_size`, and with "
        "`max_overflow = 0`."
    ),
    slows=(POST, GET),
    strength=Strength(1, "connections of each process", 1, 1000),
    uses=uses(parts.CONNECTIONS),
    needs=(parts.THREADED,),
    # With a near database or more clients, threads wait for a CPU instead.
    beside={"D1": 5},
    clients=6,
    changes=_changes,
)
