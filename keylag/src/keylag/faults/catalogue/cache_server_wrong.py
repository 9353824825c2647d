"""A list of cache servers with a wrong address."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, uses
from keylag.faults.site import Site

CLOSED_PORT = 9
"""The discard service, which nobody runs any more."""


def _changes(_: Site, __: float) -> Iterator[Change]:
    servers = f"127.0.0.1:{CLOSED_PORT}"
    yield Options(environment={"OS_CACHE__MEMCACHE_SERVERS": servers})


FAULT = Fault(
    id="C2",
    name="cache-server-hung",
    variant="wrong",
    summary="Keystone asks for its cache at an address where nothing listens.",
    mechanism=(
        f"Keystone restarts with `memcache_servers = 127.0.0.1:{CLOSED_PORT}`; "
        "memcached and its exporter run as before."
    ),
    slows=(POST, GET),
    uses=uses(parts.CACHE),
    needs=(parts.POOLED,),
    changes=_changes,
)
