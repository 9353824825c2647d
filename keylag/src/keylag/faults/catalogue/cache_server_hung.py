"""A memcached that does not answer."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.signals import RestartAfterwards, Suspended
from keylag.faults.model import GET, POST, Change, Fault, uses
from keylag.faults.site import Site


def _changes(_: Site, __: float) -> Iterator[Change]:
    yield RestartAfterwards("keystone")
    yield Suspended("memcached")


FAULT = Fault(
    id="C2",
    name="cache-server-hung",
    summary="memcached accepts connections and never answers.",
    mechanism="memcached gets SIGSTOP.",
    slows=(POST, GET),
    uses=uses(parts.CACHE),
    needs=(parts.POOLED,),
    changes=_changes,
)
