"""A memcached that refuses connections."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.signals import RestartAfterwards, Stopped
from keylag.faults.model import GET, POST, Change, Fault, uses
from keylag.faults.site import Site


def _changes(_: Site, __: float) -> Iterator[Change]:
    yield RestartAfterwards("keystone")
    yield Stopped("memcached")


FAULT = Fault(
    id="C2",
    name="cache-server-hung",
    variant="stopped",
    summary="memcached refuses connections.",
    mechanism="memcached is stopped.",
    slows=(POST, GET),
    uses=uses(parts.CACHE),
    needs=(parts.POOLED,),
    changes=_changes,
)
