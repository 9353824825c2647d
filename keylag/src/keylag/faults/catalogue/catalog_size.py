"""A large catalog."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.catalog_rows import endpoints
from keylag.faults.changes.cache import FlushedCache
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

URL_BYTES = 60


def _changes(_: Site, number: float) -> Iterator[Change]:
    yield FlushedCache()
    yield endpoints(round(number), URL_BYTES)
    yield FlushedCache()


FAULT = Fault(
    id="A2",
    name="catalog-size",
    summary="The catalog has many more endpoints.",
    mechanism="Services and endpoints are added to the catalog.",
    slows=(POST, GET),
    strength=Strength(1000, "endpoints", 1, 100_000),
    uses=uses(parts.CATALOG),
    changes=_changes,
)
