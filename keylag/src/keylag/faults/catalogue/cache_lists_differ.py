"""Nodes whose lists of cache servers differ."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, uses
from keylag.faults.site import Site
from keylag.services.keystone import cache_servers

OPTION = "OS_CACHE__MEMCACHE_SERVERS"


def _changes(site: Site, _: float) -> Iterator[Change]:
    first, second = cache_servers(site.ports)
    yield Options(environment={OPTION: first}, second_node={OPTION: second})


FAULT = Fault(
    id="C9",
    name="cache-lists-differ",
    summary="Each node looks only in its own memcached for what both have stored.",
    mechanism=(
        "Both nodes restart; the list of cache servers of each has its own memcached "
        "only, as with `memcache_servers = localhost:11211`."
    ),
    slows=(POST, GET),
    uses=uses(parts.CACHE),
    needs=(parts.CACHED, parts.NODES),
    clients=2,
    changes=_changes,
)
