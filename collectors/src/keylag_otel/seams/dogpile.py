"""The cache as dogpile runs it, and every backend that Keystone can be given."""

from __future__ import annotations

from functools import wraps
from typing import Any

from keylag_otel.seam import Seam
from keylag_otel.wrappers import Call, counted, timed, timed_context

#: What a region asks of its backend; each call is one round trip.
BACKEND_CALLS = (
    "get",
    "get_multi",
    "get_serialized",
    "get_serialized_multi",
    "set",
    "set_multi",
    "set_serialized",
    "set_serialized_multi",
    "delete",
    "delete_multi",
)


def watch_backend(configure: Call) -> Call:
    """Once a region has its backend, watch that backend's class, whatever it is."""

    @wraps(configure)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        configured = configure(self, *args, **kwargs)
        _watch_class(type(self.actual_backend))
        return configured

    return watched


def watch_memoized(cache_on_arguments: Call) -> Call:
    """Watch each function that is memoized, from before its key is made."""

    @wraps(cache_on_arguments)
    def watched(*args: Any, **kwargs: Any) -> Call:
        decorator = cache_on_arguments(*args, **kwargs)

        def memoize(function: Call) -> Call:
            return timed("cache")(decorator(function))

        return memoize

    return watched


def _watch_class(backend: type) -> None:
    """Count the calls of a backend; the null backend asks nobody, so none."""
    if "_keylag_watched" in vars(backend) or backend.__name__ == "NullBackend":
        return
    backend._keylag_watched = True  # type: ignore[attr-defined]  # noqa: SLF001
    for name in BACKEND_CALLS:
        call = getattr(backend, name, None)
        if call is not None:
            setattr(backend, name, timed("cache")(counted("cache_calls")(call)))


SEAMS = (
    *(
        Seam("dogpile.cache.region", f"CacheRegion.{name}", (timed("cache"),))
        for name in (
            "get",
            "get_multi",
            "get_or_create",
            "get_or_create_multi",
            "set",
            "set_multi",
            "delete",
            "delete_multi",
            "invalidate",
        )
    ),
    # The decorator's own work, keys and expiration times, is outside the above.
    Seam("dogpile.cache.region", "CacheRegion.cache_on_arguments", (watch_memoized,)),
    # Entered on a miss, around the call that computes the value.
    Seam(
        "dogpile.cache.region",
        "CacheRegion._log_time",
        (timed_context("other"),),
    ),
    Seam("dogpile.cache.region", "CacheRegion.configure", (watch_backend,)),
)
