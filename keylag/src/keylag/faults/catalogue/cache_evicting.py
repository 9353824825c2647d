"""A memcached that is too small."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(site: Site, per_second: float) -> Iterator[Change]:
    yield Options(memcached={"memory-limit": "2"})
    address = site.address("memcached")
    yield Helper("cache-items", {"address": address, "per_second": per_second})


FAULT = Fault(
    id="C5",
    name="cache-evicting",
    summary="memcached evicts Keystone's items before they expire.",
    mechanism=(
        "memcached restarts with 2 MB of memory, the least it accepts, and a client "
        "writes other items into it."
    ),
    slows=(POST, GET),
    strength=Strength(5000, "other items per second", 50, 50_000),
    uses=uses(parts.CACHE),
    needs=(parts.CACHED,),
    changes=_changes,
)
