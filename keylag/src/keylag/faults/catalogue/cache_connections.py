"""A memcached without free connections."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(site: Site, limit: float) -> Iterator[Change]:
    yield Options(memcached={"conn-limit": f"{limit:.0f}"})
    yield Helper("cache-connections", {"address": site.address("memcached")})


FAULT = Fault(
    id="C6",
    name="cache-connections",
    summary="memcached has no connection left for Keystone.",
    mechanism=(
        "memcached restarts with a low limit of connections, and a client holds "
        "them all."
    ),
    slows=(POST, GET),
    strength=Strength(32, "connections", 32, 10_000),
    uses=uses(parts.CACHE),
    needs=(parts.CACHED,),
    changes=_changes,
)
