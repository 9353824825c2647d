"""Keystone without a cache."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.options import Options
from keylag.faults.model import GET, POST, Change, Fault, uses
from keylag.faults.site import Site


def _changes(_: Site, __: float) -> Iterator[Change]:
    yield Options(cache="null")


FAULT = Fault(
    id="C1",
    name="cache-disabled",
    summary="Keystone caches nothing.",
    mechanism=("Keystone restarts with its default cache backend, dogpile.cache.null."),
    slows=(POST, GET),
    uses=uses(parts.CACHE),
    needs=(parts.CACHED,),
    changes=_changes,
)
