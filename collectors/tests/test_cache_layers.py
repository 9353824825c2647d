"""Cache layers with a real dogpile region and each kind of backend."""

from __future__ import annotations

import pytest
from dogpile.cache import make_region
from dogpile.cache.api import NO_VALUE, CacheBackend

from keylag_otel import cache_layers
from keylag_otel.counters import counter_attributes
from keylag_otel.model import CALL_KINDS


class Shelf(CacheBackend):
    """A backend that keeps objects, as the memcached ones do."""

    def __init__(self) -> None:
        self.kept = {}

    def get(self, key):
        return self.kept.get(key, NO_VALUE)

    def get_multi(self, keys):
        return [self.get(key) for key in keys]

    def set(self, key, value):
        self.kept[key] = value

    def delete(self, key):
        self.kept.pop(key, None)


class Wire(Shelf):
    """A backend that keeps bytes, as the Redis one does."""

    def get_serialized(self, key):
        return self.kept.get(key, NO_VALUE)

    def set_serialized(self, key, value):
        self.kept[key] = value


class Broken(Shelf):
    """A backend whose server is gone."""

    def get(self, key):
        raise ConnectionError(key)


def counted(timer) -> dict[tuple, int]:
    return {
        (name, *attributes.values()): count
        for number, count in timer.counters.items()
        for name, attributes in [counter_attributes(number)]
    }


@pytest.fixture
def make_backend():
    """Return a factory of wrapped backends of a class."""

    def make(kind):
        fresh = type(kind.__name__, (kind,), {})
        backend = fresh()
        cache_layers.assign_layer(backend, "tokens")
        cache_layers.wrap_backend_class(fresh)
        return backend

    return make


def test_hits_misses_and_changes_are_counted_by_region(
    active_timer, make_backend
) -> None:
    backend = make_backend(Shelf)

    backend.get("a")
    backend.set("a", object())
    backend.get("a")
    backend.delete("a")

    where = ("cache_calls", "tokens", "backend")
    assert counted(active_timer) == {
        (*where, "get", "miss"): 1,
        (*where, "get", "hit"): 1,
        (*where, "set", "done"): 1,
        (*where, "delete", "done"): 1,
    }
    assert active_timer.counts[1] == 4
    calls = {CALL_KINDS[kind]: sum(t[1:]) for kind, t in active_timer.calls.items()}
    assert calls == {("cache", "get"): 2, ("cache", "set"): 1, ("cache", "delete"): 1}


def test_bytes_are_counted_where_values_are_serialised(
    active_timer, make_backend
) -> None:
    backend = make_backend(Wire)

    backend.set_serialized("a", b"12345")
    backend.get_serialized("a")
    backend.get_serialized("b")

    seen = counted(active_timer)
    assert seen[("cache_bytes", "tokens", "transmit")] == 5
    assert seen[("cache_bytes", "tokens", "receive")] == 5
    assert seen[("cache_calls", "tokens", "backend", "get", "miss")] == 1


def test_get_multi_counts_look_ups_and_one_round_trip(
    active_timer, make_backend
) -> None:
    backend = make_backend(Shelf)
    backend.kept["a"] = object()

    backend.get_multi(["a", "b", "c"])

    seen = counted(active_timer)
    assert seen[("cache_calls", "tokens", "backend", "get", "hit")] == 1
    assert seen[("cache_calls", "tokens", "backend", "get", "miss")] == 2
    assert active_timer.counts[1] == 1


def test_an_error_is_counted_by_type_and_raised(active_timer, make_backend) -> None:
    with pytest.raises(ConnectionError):
        make_backend(Broken).get("a-key-with-a-token")

    assert counted(active_timer) == {("cache_errors", "tokens", "ConnectionError"): 1}


def test_backend_class_is_wrapped_once(make_backend) -> None:
    backend = make_backend(Shelf)
    before = type(backend).get

    cache_layers.wrap_backend_class(type(backend))

    assert type(backend).get is before


def test_a_backend_of_an_unknown_region_is_counted_as_such(
    active_timer, make_backend
) -> None:
    backend = make_backend(Shelf)
    del backend._keylag_layer

    backend.get("a")

    assert ("cache_calls", "unknown", "backend", "get", "miss") in counted(active_timer)


def test_null_backend_is_recognized() -> None:
    region = make_region().configure("dogpile.cache.null")

    assert cache_layers.is_null_backend(region.backend)
