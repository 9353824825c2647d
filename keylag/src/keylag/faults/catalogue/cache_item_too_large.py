"""A catalog that memcached does not store."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.catalog_rows import endpoints
from keylag.faults.changes.cache import FlushedCache
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

URL_BYTES = 2000


def _changes(_: Site, number: float) -> Iterator[Change]:
    yield FlushedCache()
    yield endpoints(round(number), URL_BYTES)
    yield FlushedCache()


FAULT = Fault(
    id="C10",
    name="cache-item-too-large",
    summary=(
        "The catalog is too large for an item of memcached, so that it is never cached."
    ),
    mechanism=(
        "Endpoints with long URLs are added to the catalog until it exceeds 1 MB."
    ),
    slows=(POST, GET),
    strength=Strength(700, "endpoints", 1, 100_000),
    uses=uses(parts.CATALOG),
    needs=(parts.CACHED,),
    changes=_changes,
)
