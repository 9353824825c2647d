"""Hooks for the cache layers: the backend, and Keystone's request-local cache.

Before each key, dogpile looks up the id of its region in the region "invalidation
region", through the same two layers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from keylag_otel.counters import counter_id
from keylag_otel.model import CALL_KINDS
from keylag_otel.patches import is_patched, patch, replace
from keylag_otel.request_timer import (
    COUNTS,
    RequestTimer,
    count_cache_get,
    wrap_cache_call,
)

BACKEND = "backend"
REQUEST_LOCAL = "request_local"
_CALLS = COUNTS.index("cache_calls")
_UNKNOWN = "unknown"
_LAYER = "_keylag_layer"  # the native part reads this attribute

#: Operation by method of a backend; each call is a round trip.
BACKEND_CALLS = {
    "get": "get",
    "get_multi": "get",
    "get_serialized": "get",
    "get_serialized_multi": "get",
    "set": "set",
    "set_multi": "set",
    "set_serialized": "set",
    "set_serialized_multi": "set",
    "delete": "delete",
    "delete_multi": "delete",
}


class CacheLayer(NamedTuple):
    """The counter ids of the backend of a region; C reads the first three by index."""

    hit: int
    miss: int
    received: int
    sent: int
    set: int
    delete: int
    region: str


@lru_cache(maxsize=1024)
def cache_layer(region: str) -> CacheLayer:
    """Return the counter ids of the backend of a region, always the same object."""
    return CacheLayer(
        hit=counter_id("cache_calls", region, BACKEND, "get", "hit"),
        miss=counter_id("cache_calls", region, BACKEND, "get", "miss"),
        received=counter_id("cache_bytes", region, "receive"),
        sent=counter_id("cache_bytes", region, "transmit"),
        set=counter_id("cache_calls", region, BACKEND, "set", "done"),
        delete=counter_id("cache_calls", region, BACKEND, "delete", "done"),
        region=region,
    )


def assign_layer(backend: Any, region: str) -> None:
    """Give a backend the counters of the region that it serves."""
    patch(backend, lambda each: replace(each, _LAYER, cache_layer(region)))


def is_null_backend(backend: Any) -> bool:
    """Return whether this is the null backend, Keystone's default."""
    return type(backend).__name__ == "NullBackend"


def wrap_backend_class(backend: type) -> None:
    """Wrap the methods of a backend class, once."""
    if not is_patched(backend):
        patch(backend, _wrap_backend_calls)


def _wrap_backend_calls(backend: type) -> None:
    replace(backend, _LAYER, cache_layer(_UNKNOWN))
    hooks = {
        "get": count_cache_get(_no_value()),
        "set": count_cache_set,
        "delete": count_cache_delete,
    }
    for name, operation in BACKEND_CALLS.items():
        call = getattr(backend, name, None)
        if call is not None:
            # Stay in the cell: the call of the region around it is in phase cache.
            wrapper = wrap_cache_call(
                call,
                _CALLS,
                CALL_KINDS.index(("cache", operation)),
                hooks[operation],
                count_cache_error,
            )
            replace(backend, name, wrapper)


def _no_value() -> Any:
    from dogpile.cache.api import NO_VALUE  # noqa: PLC0415 - only inside Keystone

    return NO_VALUE


def count_cache_set(timer: RequestTimer, args: tuple[Any, ...], result: Any) -> None:
    """Count stored values, and their bytes if they are serialised."""
    del result
    is_mapping = len(args) == len(("self", "mapping"))
    for value in args[1].values() if is_mapping else args[-1:]:
        timer.increment(timer.cache_layer.set)
        if isinstance(value, bytes):
            timer.increment(timer.cache_layer.sent, len(value))


def count_cache_delete(timer: RequestTimer, args: tuple[Any, ...], result: Any) -> None:
    """Count a deletion."""
    del args, result
    timer.increment(timer.cache_layer.delete)


def count_cache_error(
    timer: RequestTimer, args: tuple[Any, ...], error: Exception
) -> None:
    """Count a failed backend call by the type of its exception."""
    del args
    timer.increment(
        counter_id("cache_errors", timer.cache_layer.region, type(error).__name__)
    )


def count_memcache_bytes_sent(timer: Any, args: tuple[Any, ...], stored: Any) -> None:
    """Count the bytes of a value that python-memcached serialised."""
    del args
    if timer.cache_layer is not None:
        timer.increment(timer.cache_layer.sent, stored[1])


def count_pymemcache_bytes_sent(timer: Any, args: tuple[Any, ...], stored: Any) -> None:
    """Count the bytes of a value that pymemcache serialised."""
    del args
    if timer.cache_layer is not None:
        timer.increment(timer.cache_layer.sent, len(stored[0]))


def count_dead_server(
    timer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Count a server that python-memcached marks as dead."""
    del args, kwargs
    region = _UNKNOWN if timer.cache_layer is None else timer.cache_layer.region
    timer.increment(counter_id("cache_errors", region, "server_dead"))
