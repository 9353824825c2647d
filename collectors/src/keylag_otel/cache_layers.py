"""The layers of the cache: Keystone's request-local one, and the backend below.

A region's own id is looked up in the region "invalidation region" before each
of its keys, through the same two layers.
"""

from __future__ import annotations

from typing import Any

from keylag_otel.clock import COUNTS, Clock, asked, got, looked_up, watch
from keylag_otel.patches import is_patched, patch, replace
from keylag_otel.tally import tally
from keylag_otel.wrappers import Call

BACKEND = "backend"
REQUEST_LOCAL = "request_local"
_CALLS = COUNTS.index("cache_calls")
_UNKNOWN = "unknown"
_LAYER = "_keylag_layer"  # what the native half reads

#: What a region asks of its backend, and what that does; each is a round trip.
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


class Layer:
    """The tallies of one layer of one region."""

    __slots__ = ("delete", "get", "hit", "miss", "received", "region", "sent", "set")

    def __init__(self, region: str, layer: str) -> None:
        self.region = region
        self.hit = tally("cache_calls", region, layer, "get", "hit")
        self.miss = tally("cache_calls", region, layer, "get", "miss")
        self.set = tally("cache_calls", region, layer, "set", "done")
        self.delete = tally("cache_calls", region, layer, "delete", "done")
        self.received = tally("cache_bytes", region, "receive")
        self.sent = tally("cache_bytes", region, "transmit")


def give_layer(instance: Any, region: str, layer: str) -> None:
    """Tell a backend or proxy which region it serves."""
    patch(instance, lambda each: replace(each, _LAYER, Layer(region, layer)))


def is_null(backend: Any) -> bool:
    """Return whether a backend asks nobody, as Keystone's default one does."""
    return type(backend).__name__ == "NullBackend"


def watch_class(backend: type) -> None:
    """Watch every call of a backend's class, once."""
    if not is_patched(backend):
        patch(backend, _watch_calls)


def _watch_calls(backend: type) -> None:
    replace(backend, _LAYER, Layer(_UNKNOWN, BACKEND))
    notes = {"get": got(_no_value()), "set": note_set, "delete": note_deleted}
    for name, operation in BACKEND_CALLS.items():
        call = getattr(backend, name, None)
        if call is not None:
            # It takes no time of its own: the region's call around it is cache already.
            watched = asked(call, _CALLS, notes[operation], note_error)
            replace(backend, name, watched)


def watch_local(look_up: Call) -> Call:
    """Count the look-ups in the request-local layer."""
    return watch(look_up, after=looked_up(_no_value()))


def _no_value() -> Any:
    from dogpile.cache.api import NO_VALUE  # noqa: PLC0415 - only inside Keystone

    return NO_VALUE


def note_set(clock: Clock, args: tuple[Any, ...], answer: Any) -> None:
    """Count a value that was stored, and its bytes if it was serialised by then."""
    del answer
    clock.tally(clock.layer.set)
    if isinstance(args[-1], bytes):
        clock.tally(clock.layer.sent, len(args[-1]))


def note_deleted(clock: Clock, args: tuple[Any, ...], answer: Any) -> None:
    """Count a deletion."""
    del args, answer
    clock.tally(clock.layer.delete)


def note_error(clock: Clock, args: tuple[Any, ...], error: Exception) -> None:
    """Count a call that raised."""
    del args
    clock.tally(tally("cache_errors", clock.layer.region, type(error).__name__))


def note_sent(clock: Any, args: tuple[Any, ...], stored: Any) -> None:
    """Count the bytes of a value that python-memcached has serialised."""
    del args
    if clock.layer is not None:
        clock.tally(clock.layer.sent, stored[1])


def note_value_sent(clock: Any, args: tuple[Any, ...], stored: Any) -> None:
    """Count the bytes of a value that pymemcache has serialised."""
    del args
    if clock.layer is not None:
        clock.tally(clock.layer.sent, len(stored[0]))


def note_dead(clock: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a server that python-memcached gives up for a while."""
    del args, kwargs
    region = _UNKNOWN if clock.layer is None else clock.layer.region
    clock.tally(tally("cache_errors", region, "server_dead"))
