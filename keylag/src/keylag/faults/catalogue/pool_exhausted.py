"""A connection pool that is smaller than the threads need."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, threads: float) -> Iterator[Change]:
    pool = {"OS_DATABASE__MAX_POOL_SIZE": "1", "OS_DATABASE__MAX_OVERFLOW": "0"}
    yield Options(threads=round(threads), environment=pool)


FAULT = Fault(
    id="D5",
    name="pool-exhausted",
    summary="Keystone's threads wait for a connection of the pool.",
    mechanism=(
        "Keystone restarts with several threads in each process, and with "
        "`[database] max_pool_size = 1` and `max_overflow = 0`."
    ),
    slows=(POST, GET),
    strength=Strength(8, "threads in each process", 2, 64),
    uses=uses(parts.CONNECTIONS, parts.PROCESSES),
    clients=8,
    changes=_changes,
)
