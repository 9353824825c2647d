"""The cache as dogpile runs it, and every backend that Keystone can be given."""

from __future__ import annotations

from functools import wraps
from typing import Any

from keylag_otel.cache_layers import (
    BACKEND,
    REQUEST_LOCAL,
    give_layer,
    is_null,
    note_dead,
    note_sent,
    note_value_sent,
    watch_class,
    watch_local,
)
from keylag_otel.clock import Clock, computed, memoized, received
from keylag_otel.patches import remember_decorated, remember_decorator
from keylag_otel.seam import Seam
from keylag_otel.tally import tally
from keylag_otel.wrappers import (
    Call,
    fault,
    noted,
    noted_result,
    timed,
    timed_context,
)


def watch_backend(configure: Call) -> Call:
    """Once a region has its backend, watch that backend's class, whatever it is.

    The null backend asks nobody, so it is left alone.
    """

    @wraps(configure)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        configured = configure(self, *args, **kwargs)
        try:
            backend = self.actual_backend
            if not is_null(backend):
                give_layer(backend, self.name, BACKEND)
                watch_class(type(backend))
        except Exception:
            fault(configure)
        return configured

    return watched


def watch_proxy(wrap: Call) -> Call:
    """Tell each proxy which region it serves."""

    @wraps(wrap)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        wrapped = wrap(self, *args, **kwargs)
        try:
            give_layer(self.backend, self.name, REQUEST_LOCAL)
        except Exception:
            fault(wrap)
        return wrapped

    return watched


def watch_memoized(cache_on_arguments: Call) -> Call:
    """Watch each function that is memoized, from before its key is made."""

    @wraps(cache_on_arguments)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Call:
        decorator: Call = cache_on_arguments(self, *args, **kwargs)
        if not callable(decorator):
            return decorator

        def memoize(function: Call) -> Call:
            decorated: Call = decorator(function)
            try:
                return _memoized(self, function, decorated)
            except Exception:
                fault(cache_on_arguments)
                return decorated

        remember_decorator(memoize, decorator)
        return memoize

    return watched


def _memoized(region: Any, function: Call, decorated: Call) -> Call:
    """Return the watched twin of what dogpile made of a function."""
    if not callable(decorated):
        return decorated
    name = f"{function.__module__}:{function.__name__}"
    # A region is named when it is configured, after its functions.
    note = memoized(
        region,
        lambda: (
            tally("memoized_calls", region.name, name, "hit"),
            tally("memoized_calls", region.name, name, "miss"),
        ),
    )
    watched = timed("cache", after=note, failed=note_not_computed)(decorated)
    remember_decorated(function, watched, decorated)
    return watched


def note_not_computed(clock: Clock, args: tuple[Any, ...], error: Exception) -> None:
    """Forget which region was to compute a value that it could not."""
    del args, error
    clock.missed = None


def note_invalidated(
    clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Count the invalidation of a whole region."""
    del kwargs
    clock.tally(tally("cache_invalidations", args[0].name))


SEAMS = (
    # Not `get_or_create`: memoized functions and region ids alone come by it, and
    # both are asked for where time is the cache's already.
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
        (timed("cache"), noted(note_invalidated)),
    ),
    # The decorator's own work, keys and expiration times, is outside the above.
    Seam(
        "dogpile.cache.region",
        "CacheRegion.cache_on_arguments",
        (watch_memoized,),
        expects=("self",),
    ),
    # Entered on a miss, around the call that computes the value.
    Seam(
        "dogpile.cache.region",
        "CacheRegion._log_time",
        (timed_context("other", computed()),),
        optional=True,
    ),
    *(
        Seam("dogpile.cache.region", f"CacheRegion.{name}", (maker,), expects=("self",))
        for name, maker in (("configure", watch_backend), ("wrap", watch_proxy))
    ),
    # Keystone's request-local layer, between a region and its backend.
    Seam(
        "keystone.common.cache._context_cache",
        "_ResponseCacheProxy._get_local_cache",
        (watch_local,),
        optional=True,
        expects=("self", "key"),
    ),
    # Memcached's clients serialise by themselves; the others are given bytes.
    Seam(
        "memcache",
        "Client._recv_value",
        (noted(received(3)),),
        optional=True,
        expects=("self", "server", "flags", "rlen"),
    ),
    Seam(
        "memcache",
        "Client._val_to_store_info",
        (noted_result(note_sent),),
        optional=True,
    ),
    # python-memcached tells nobody when a server is gone; all is a miss from then.
    Seam("memcache", "_Host.mark_dead", (noted(note_dead),), optional=True),
    Seam(
        "pymemcache.serde",
        "PickleSerde.deserialize",
        (noted(received(2)),),
        optional=True,
        expects=("self", "key", "value"),
    ),
    Seam(
        "pymemcache.serde",
        "PickleSerde.serialize",
        (noted_result(note_value_sent),),
        optional=True,
    ),
)
