"""A token cache that does not answer."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.options import Options
from keylag.faults.model import SERVICE, Change, Fault, Strength, uses
from keylag.faults.site import Site


def _changes(site: Site, stall_after: float) -> Iterator[Change]:
    address = site.free_address()
    places = {"listen": address, "upstream": site.address("memcached")}
    yield Helper("relay", {**places, "stall_after": round(stall_after)})
    option = {"OS_KEYSTONE_AUTHTOKEN__MEMCACHED_SERVERS": address}
    yield Options(service=option)


FAULT = Fault(
    id="M2",
    name="token-cache-stall",
    summary=(
        "The memcached of the sample service accepts connections and never answers."
    ),
    mechanism=(
        "The service restarts with the address of a relay that passes nothing on."
    ),
    slows=(SERVICE,),
    strength=Strength(0, "bytes of a connection before it stalls", 0, 1e9),
    uses=uses(parts.SERVICE_CACHE),
    needs=(parts.WITH_SERVICE,),
    changes=_changes,
)
