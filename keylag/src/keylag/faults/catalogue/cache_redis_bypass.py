"""A cache backend that bypasses the request-local cache."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, uses
from keylag.faults.site import Site


def _changes(_: Site, __: float) -> Iterator[Change]:
    yield Options(cache="redis")


FAULT = Fault(
    id="C7",
    name="cache-redis-bypass",
    summary="Keystone makes several times as many cache calls.",
    mechanism=(
        "Keystone restarts with the backend dogpile.cache.redis, which bypasses "
        "its request-local cache."
    ),
    slows=(POST, GET),
    uses=uses(parts.CACHE),
    needs=(parts.CACHED,),
    changes=_changes,
)
