"""Another client that empties memcached."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.helper import Helper
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(site: Site, per_second: float) -> Iterator[Change]:
    address = site.address("memcached")
    yield Helper("cache-flushes", {"address": address, "per_second": per_second})


FAULT = Fault(
    id="C8",
    name="cache-flushed",
    variant="client",
    summary="Another application shares memcached, and flushes it again and again.",
    mechanism="A client sends `flush_all` to memcached.",
    slows=(POST, GET),
    strength=Strength(4, "flushes per second", 0.01, 1000),
    uses=uses(parts.CACHE),
    needs=(parts.CACHED,),
    changes=_changes,
)
