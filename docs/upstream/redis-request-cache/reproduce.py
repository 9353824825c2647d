"""Reads one value several times in a request, from a backend that serialises."""

from typing import Any

from dogpile.cache import make_region
from dogpile.cache.proxy import ProxyBackend
from keystone.common.cache._context_cache import _ResponseCacheProxy
from oslo_context import context

READS = 3


class Counter(ProxyBackend):
    """Counts what is read from the backend itself."""

    reads = 0

    def get(self, key: str) -> Any:
        """Count, and read."""
        Counter.reads += 1
        return self.proxied.get(key)

    def get_serialized(self, key: str) -> Any:
        """Count, and read."""
        Counter.reads += 1
        return self.proxied.get_serialized(key)


def find_fault() -> str:
    """Return what goes to the backend although the request has it already."""
    region = make_region()
    # Like Redis and Valkey, this backend has a serialiser.
    region.configure("dogpile.cache.memory_pickle", wrap=[Counter])
    region.wrap(_ResponseCacheProxy)
    context.RequestContext(overwrite=True)
    region.set("key", "value")
    values = [region.get("key") for _ in range(READS)]
    region.delete("key")
    if values != ["value"] * READS or region.get("key"):
        return "the cache returned a wrong value"
    # Without the last read, which has to find that the value was deleted.
    reads = Counter.reads - 1
    if not reads:
        return ""
    return (
        f"{reads} of {READS} reads of a value that the request had written went to the"
        " backend"
    )
