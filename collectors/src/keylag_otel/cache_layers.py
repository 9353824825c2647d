"""The layers of the cache: Keystone's request-local one, and the backend below.

A region's own id is looked up in the region "invalidation region" before each
of its keys, through the same two layers.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from keylag_otel.clock import COUNTS, Clock, current, looked_up, watch
from keylag_otel.tally import tally
from keylag_otel.wrappers import Call, fault

BACKEND = "backend"
REQUEST_LOCAL = "request_local"
_CALLS = COUNTS.index("cache_calls")
_UNKNOWN = "unknown"

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


#: Given a request's clock, the layer, the call's arguments and its answer.
Note = Callable[[Clock, Layer, "tuple[Any, ...]", Any], None]


def give_layer(instance: Any, region: str, layer: str) -> None:
    """Tell a backend or proxy which region it serves."""
    instance._keylag_layer = Layer(region, layer)  # noqa: SLF001


def is_null(backend: Any) -> bool:
    """Return whether a backend asks nobody, as Keystone's default one does."""
    return type(backend).__name__ == "NullBackend"


def watch_class(backend: type) -> None:
    """Watch every call of a backend's class, once."""
    if "_keylag_layer" in vars(backend):
        return
    give_layer(backend, _UNKNOWN, BACKEND)
    for name, operation in BACKEND_CALLS.items():
        call = getattr(backend, name, None)
        if call is not None:
            setattr(backend, name, _watched(call, _NOTES[operation]))


def _watched(call: Call, note: Note) -> Call:
    """Count a backend's calls and errors, and note what came of each.

    It takes no time of its own: the region's call around it is cache already.
    Only a trace shows it apart.
    """

    @wraps(call)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        clock = current()
        if clock is None or clock.layer is not None:
            # Outside a request, or a call that a backend makes to itself.
            return call(self, *args, **kwargs)
        clock.counts[_CALLS] += 1
        layer = clock.layer = self._keylag_layer
        if clock.events is not None:
            clock.turn(clock.at, call)
        try:
            answer = call(self, *args, **kwargs)
            try:
                note(clock, layer, args, answer)
            except Exception:
                fault(call)
        except Exception as error:
            kind = type(error).__name__
            clock.tally(tally("cache_errors", layer.region, kind))
            raise
        finally:
            clock.layer = None
            if clock.events is not None:
                clock.turn(clock.at)
        return answer

    return watched


def _note_got(clock: Clock, layer: Layer, args: tuple[Any, ...], answer: Any) -> None:
    """Count what a look-up found; several keys at once are several look-ups."""
    if isinstance(answer, list):
        for one in answer:
            _note_got(clock, layer, args, one)
    elif answer is None or type(answer).__name__ == "NoValue":
        clock.tally(layer.miss)
    else:
        clock.tally(layer.hit)
        if type(answer) is bytes:
            clock.tally(layer.received, len(answer))


def _note_set(clock: Clock, layer: Layer, args: tuple[Any, ...], answer: Any) -> None:
    """Count a value that was stored, and its bytes if it was serialised by then."""
    del answer
    clock.tally(layer.set)
    if args and isinstance(args[-1], bytes):
        clock.tally(layer.sent, len(args[-1]))


def _note_deleted(
    clock: Clock, layer: Layer, args: tuple[Any, ...], answer: Any
) -> None:
    """Count a deletion."""
    del args, answer
    clock.tally(layer.delete)


_NOTES: dict[str, Note] = {"get": _note_got, "set": _note_set, "delete": _note_deleted}


def watch_local(look_up: Call) -> Call:
    """Count the look-ups in the request-local layer."""
    from dogpile.cache.api import NO_VALUE  # noqa: PLC0415 - only inside Keystone

    return watch(look_up, after=looked_up(NO_VALUE))


def note_received(clock: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count the bytes that python-memcached was told it will receive."""
    del kwargs
    if clock.layer is not None:
        clock.tally(clock.layer.received, args[3])


def note_sent(clock: Any, args: tuple[Any, ...], stored: Any) -> None:
    """Count the bytes of a value that python-memcached has serialised."""
    del args
    if clock.layer is not None:
        clock.tally(clock.layer.sent, stored[1])


def note_value_received(
    clock: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Count the bytes of a value that pymemcache is about to load."""
    del kwargs
    if clock.layer is not None:
        clock.tally(clock.layer.received, len(args[2]))


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
