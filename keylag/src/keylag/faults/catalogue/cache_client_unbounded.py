"""A cache client that waits without a limit."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.options import Options
from keylag.faults.changes.signals import MayBeSuspended
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(_: Site, seconds: float) -> Iterator[Change]:
    yield Options(cache="pymemcache")
    yield MayBeSuspended("memcached")
    period = seconds + 1
    cycle = {"period_ms": period * 1000, "stopped_share": seconds / period}
    yield Helper("duty-cycle", {"service": "memcached", **cycle})


FAULT = Fault(
    id="C3",
    name="cache-client-unbounded",
    summary="memcached pauses, and Keystone's client of it has no time-out.",
    mechanism=(
        "Keystone restarts with the backend dogpile.cache.pymemcache, and "
        "memcached gets SIGSTOP and SIGCONT in turn, with a second between two "
        "pauses."
    ),
    slows=(POST, GET),
    strength=Strength(2, "s of each pause", 0.1, 600),
    uses=uses(parts.CACHE),
    needs=(parts.CACHED,),
    changes=_changes,
)
