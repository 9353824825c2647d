"""What the functions of the tables of seams do, on hosts of a few lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dogpile.cache import make_region

from keylag_otel import patches
from keylag_otel.clock import Clock
from keylag_otel.model import CELLS
from keylag_otel.seams import dogpile, keystone, sqlalchemy
from keylag_otel.tally import attributes_of


def counted(clock: Clock) -> dict[tuple[Any, ...], int]:
    return {
        (name, *attributes.values()): count
        for number, count in clock.tallies.items()
        for name, attributes in [attributes_of(number)]
    }


def phases(clock: Clock) -> dict[str, int]:
    clock.book()
    return {CELLS[cell][0]: spent for cell, spent in clock.spent().items()}


@pytest.mark.parametrize("optional", [True, False])
@pytest.mark.parametrize("name", ["do_execute", "do_executemany", "do_ping"])
def test_a_dialect_is_watched_method_by_method(time, running, name, optional) -> None:
    (seam,) = sqlalchemy._dialect("a.b", "Dialect", name, optional=optional)
    is_statement = name != "do_ping"

    assert (seam.module, seam.path) == ("a.b", f"Dialect.{name}")
    assert seam.optional is optional
    assert seam.expects == (("self", "cursor", "statement") if is_statement else ())
    assert (seam.makers == sqlalchemy._STATEMENT) == is_statement
    if not is_statement:
        (maker,) = seam.makers
        maker(time.passes)(5)
        assert phases(running) == {"sql": 5}


def note_route(clock: Clock, rule: Any) -> None:
    clock.environ = {"werkzeug.request": SimpleNamespace(url_rule=rule)}
    keystone.note_route(clock, (), {})


def test_a_route_is_the_rule_that_matched_first(running) -> None:
    note_route(running, None)
    without = running.route
    note_route(running, SimpleNamespace(rule="/v3/users/<id>"))
    note_route(running, SimpleNamespace(rule="/v3/projects/<id>"))

    assert without is None
    assert running.route == "/v3/users/<id>"


def test_an_invalidation_is_counted_by_its_region(running) -> None:
    dogpile.note_invalidated(running, (make_region(name="roles"), True), {})

    assert counted(running) == {("cache_invalidations", "roles"): 1}


def test_a_value_that_could_not_be_computed_is_nobodys_miss(running) -> None:
    running.missed = make_region(name="roles")

    dogpile.note_not_computed(running, (), ValueError())

    assert running.missed is None


class Region:
    """What is asked of a region, with a decorator that takes a moment itself."""

    name = "roles"

    def __init__(self, time: Any = None) -> None:
        self.time = time

    @dogpile.watch_memoized
    def cache_on_arguments(self) -> Any:
        return self.decorate

    def decorate(self, function: Any) -> Any:
        def decorated(*args: Any) -> Any:
            self.time.passes(7)
            return function(*args)

        return decorated


def test_a_memoized_function_is_timed_and_counted_by_its_name(time, running) -> None:
    region = Region(time)

    @region.cache_on_arguments()
    def answer(missed: Any) -> str:
        running.missed = missed
        return "answer"

    said = [answer(None), answer(region), answer(None)]

    name = f"{__name__}:answer"
    assert said == ["answer"] * 3
    assert counted(running) == {
        ("memoized_calls", "roles", name, "hit"): 2,
        ("memoized_calls", "roles", name, "miss"): 1,
    }
    assert phases(running) == {"cache": 21}


def test_a_memoized_function_can_be_put_back(time, monkeypatch) -> None:
    monkeypatch.setattr(patches, "_decorated", {})
    region = Region(time)

    def answer() -> None: ...

    watched = region.cache_on_arguments()(answer)

    ((place, (ours, theirs)),) = patches._decorated.items()
    assert place == (answer.__module__, answer.__qualname__)
    assert ours is watched
    assert theirs.__qualname__ == "Region.decorate.<locals>.decorated"


def test_a_memoized_function_that_raises_missed_nothing(time, running) -> None:
    region = Region(time)

    @region.cache_on_arguments()
    def fail() -> None:
        running.missed = region
        raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert running.missed is None
    assert counted(running) == {}


def test_what_a_decorator_makes_of_a_function_may_be_no_function(running) -> None:
    region = Region()
    region.decorate = lambda function: {"kept": function}

    made = region.cache_on_arguments()(len)

    assert made == {"kept": len}


def test_what_decorates_nothing_is_passed_on() -> None:
    region = Region()
    region.decorate = None

    assert region.cache_on_arguments() is None


class Configured:
    """A region that gets its backend, and a proxy around it, when it is asked to."""

    name = "roles"

    def __init__(self, backend: Any) -> None:
        self.actual_backend = self.backend = backend

    @dogpile.watch_backend
    def configure(self) -> str:
        return "configured"

    @dogpile.watch_proxy
    def wrap(self) -> str:
        return "wrapped"


class Backend:
    def get(self, key: str) -> str:
        return key


def test_a_backend_is_watched_once_its_region_has_it(running) -> None:
    region = Configured(type("Fresh", (Backend,), {})())
    before = region.backend.get("key")

    configured = region.configure()
    after = region.backend.get("key")

    assert (configured, before, after) == ("configured", "key", "key")
    (where,) = counted(running)
    assert where[:3] == ("cache_calls", "roles", "backend")


def test_a_region_without_a_backend_is_counted_as_a_fault(running, monkeypatch) -> None:
    faults: list[Any] = []
    monkeypatch.setattr(dogpile, "fault", faults.append)
    region = Configured(None)
    del region.backend, region.actual_backend

    assert (region.configure(), region.wrap()) == ("configured", "wrapped")
    assert [call.__name__ for call in faults] == ["configure", "wrap"]
