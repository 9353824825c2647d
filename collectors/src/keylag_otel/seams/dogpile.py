"""Seams of dogpile.cache and of the clients of its backends."""

from __future__ import annotations

from functools import wraps
from typing import Any

from keylag_otel.cache_layers import (
    REQUEST_LOCAL,
    assign_layer,
    cache_layer,
    count_dead_server,
    count_memcache_bytes_sent,
    count_pymemcache_bytes_sent,
    is_null_backend,
    wrap_backend_class,
)
from keylag_otel.counters import counter_id
from keylag_otel.patches import register_decorated, register_decorator
from keylag_otel.request_timer import (
    RequestTimer,
    count_bytes_received,
    count_memoized_call,
    mark_miss,
)
from keylag_otel.seam import Seam
from keylag_otel.wrappers import (
    Call,
    after_call,
    before_call,
    count_fault,
    timed,
    timed_context,
)


def wrap_configure(configure: Call) -> Call:
    """Wrap ``CacheRegion.configure`` to wrap the class of the region's backend.

    The null backend has no server and stays unwrapped.
    """

    @wraps(configure)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        configured = configure(self, *args, **kwargs)
        try:
            backend = self.actual_backend
            if not is_null_backend(backend):
                assign_layer(backend, self.name)
                wrap_backend_class(type(backend))
        except Exception:
            count_fault(configure)
        return configured

    return wrapper


def wrap_cache_on_arguments(cache_on_arguments: Call) -> Call:
    """Wrap the decorator of memoized functions to time calls, keys included."""

    @wraps(cache_on_arguments)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Call:
        decorator: Call = cache_on_arguments(self, *args, **kwargs)
        if not callable(decorator):
            return decorator

        def memoize(function: Call) -> Call:
            decorated: Call = decorator(function)
            try:
                return _wrap_memoized(self, function, decorated)
            except Exception:
                count_fault(cache_on_arguments)
                return decorated

        register_decorator(memoize, decorator)
        return memoize

    return wrapper


def _wrap_memoized(region: Any, function: Call, decorated: Call) -> Call:
    """Return a wrapper of a memoized function."""
    if not callable(decorated):
        return decorated
    name = f"{function.__module__}:{function.__name__}"
    # The region gets its name later, when it is configured.
    hook = count_memoized_call(
        region,
        lambda: (
            counter_id("memoized_calls", region.name, name, "hit"),
            counter_id("memoized_calls", region.name, name, "miss"),
            counter_id("cache_calls", region.name, REQUEST_LOCAL, "get", "hit"),
            cache_layer(region.name),
        ),
    )
    wrapper = timed("cache", after=hook, on_error=clear_missed_region)(decorated)
    register_decorated(function, wrapper, decorated)
    return wrapper


def clear_missed_region(
    timer: RequestTimer, args: tuple[Any, ...], error: Exception
) -> None:
    """Clear the missed region after a computation that raised."""
    del args, error
    timer.missed_region = None


def count_invalidation(
    timer: RequestTimer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Count the invalidation of a region."""
    del kwargs
    timer.increment(counter_id("cache_invalidations", args[0].name))


SEAMS = (
    # Not `get_or_create`: only memoized functions and region ids use it, and both are
    # in phase cache already.
    *(
        Seam("dogpile.cache.region", f"CacheRegion.{name}", (timed("cache"),))
        for name in (
            "get",
            "get_multi",
            "get_or_create_multi",
            "set",
            "set_multi",
            "delete",
            "delete_multi",
        )
    ),
    Seam(
        "dogpile.cache.region",
        "CacheRegion.invalidate",
        (timed("cache"), before_call(count_invalidation)),
    ),
    # The decorator computes keys and expiration times outside of the calls above.
    Seam(
        "dogpile.cache.region",
        "CacheRegion.cache_on_arguments",
        (wrap_cache_on_arguments,),
        expects=("self",),
    ),
    # Its body computes the value after a miss.
    Seam(
        "dogpile.cache.region",
        "CacheRegion._log_time",
        (timed_context("other", mark_miss()),),
        optional=True,
    ),
    Seam(
        "dogpile.cache.region",
        "CacheRegion.configure",
        (wrap_configure,),
        expects=("self",),
    ),
    # The memcached clients serialise values; the other backends get bytes.
    Seam(
        "memcache",
        "Client._recv_value",
        (before_call(count_bytes_received(3)),),
        optional=True,
        expects=("self", "server", "flags", "rlen"),
    ),
    Seam(
        "memcache",
        "Client._val_to_store_info",
        (after_call(count_memcache_bytes_sent),),
        optional=True,
    ),
    # python-memcached reports a dead server as misses only.
    Seam(
        "memcache", "_Host.mark_dead", (before_call(count_dead_server),), optional=True
    ),
    Seam(
        "pymemcache.serde",
        "PickleSerde.deserialize",
        (before_call(count_bytes_received(2)),),
        optional=True,
        expects=("self", "key", "value"),
    ),
    Seam(
        "pymemcache.serde",
        "PickleSerde.serialize",
        (after_call(count_pymemcache_bytes_sent),),
        optional=True,
    ),
)
