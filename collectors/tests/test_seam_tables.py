"""The wrappers of the seam tables, on minimal hosts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dogpile.cache import make_region

from keylag_otel import patches
from keylag_otel.counters import counter_attributes
from keylag_otel.model import CELLS
from keylag_otel.request_timer import RequestTimer
from keylag_otel.seams import dogpile, keystone, sqlalchemy


def counted(timer: RequestTimer) -> dict[tuple[Any, ...], int]:
    return {
        (name, *attributes.values()): count
        for number, count in timer.counters.items()
        for name, attributes in [counter_attributes(number)]
    }


def phases(timer: RequestTimer) -> dict[str, int]:
    timer.accumulate()
    return {CELLS[cell][0]: spent for cell, spent in timer.self_times().items()}


@pytest.mark.parametrize("optional", [True, False])
@pytest.mark.parametrize("name", ["do_execute", "do_executemany", "do_ping"])
def test_dialect_methods_have_their_phases(time, active_timer, name, optional) -> None:
    (seam,) = sqlalchemy._dialect("a.b", "Dialect", name, optional=optional)
    is_statement = name != "do_ping"

    assert (seam.module, seam.path) == ("a.b", f"Dialect.{name}")
    assert seam.optional is optional
    assert seam.expects == (("self", "cursor", "statement") if is_statement else ())
    assert (seam.factories == sqlalchemy._STATEMENT) == is_statement
    if not is_statement:
        (maker,) = seam.factories
        maker(time.passes)(5)
        assert phases(active_timer) == {"sql": 5}


def record_route(timer: RequestTimer, rule: Any) -> None:
    timer.environ = {"werkzeug.request": SimpleNamespace(url_rule=rule)}
    keystone.record_route(timer, (), {})


def test_route_is_the_first_matched_rule(active_timer) -> None:
    record_route(active_timer, None)
    without = active_timer.route
    record_route(active_timer, SimpleNamespace(rule="/v3/users/<id>"))
    record_route(active_timer, SimpleNamespace(rule="/v3/projects/<id>"))

    assert without is None
    assert active_timer.route == "/v3/users/<id>"


def test_an_invalidation_is_counted_by_its_region(active_timer) -> None:
    dogpile.count_invalidation(active_timer, (make_region(name="roles"), True), {})

    assert counted(active_timer) == {("cache_invalidations", "roles"): 1}


def test_failed_computation_clears_the_missed_region(active_timer) -> None:
    active_timer.missed_region = make_region(name="roles")

    dogpile.clear_missed_region(active_timer, (), ValueError())

    assert active_timer.missed_region is None


class Region:
    """A region whose decorator takes time itself."""

    name = "roles"

    def __init__(self, time: Any = None) -> None:
        self.time = time

    @dogpile.wrap_cache_on_arguments
    def cache_on_arguments(self) -> Any:
        return self.decorate

    def decorate(self, function: Any) -> Any:
        def decorated(*args: Any) -> Any:
            self.time.passes(7)
            return function(*args)

        return decorated


def test_a_memoized_function_is_timed_and_counted_by_its_name(
    time, active_timer
) -> None:
    region = Region(time)

    @region.cache_on_arguments()
    def answer(missed: Any) -> str:
        active_timer.missed_region = missed
        return "answer"

    said = [answer(None), answer(region), answer(None)]

    name = f"{__name__}:answer"
    assert said == ["answer"] * 3
    assert counted(active_timer) == {
        ("memoized_calls", "roles", name, "hit"): 2,
        ("memoized_calls", "roles", name, "miss"): 1,
        ("cache_calls", "roles", "request_local", "get", "hit"): 2,
    }
    assert phases(active_timer) == {"cache": 21}


def test_memoized_function_can_be_restored(time, monkeypatch) -> None:
    monkeypatch.setattr(patches, "_decorated", {})
    region = Region(time)

    def answer() -> None: ...

    wrapper = region.cache_on_arguments()(answer)

    ((place, (ours, theirs)),) = patches._decorated.items()
    assert place == (answer.__module__, answer.__qualname__)
    assert ours is wrapper
    assert theirs.__qualname__ == "Region.decorate.<locals>.decorated"


def test_raising_memoized_function_counts_no_miss(time, active_timer) -> None:
    region = Region(time)

    @region.cache_on_arguments()
    def fail() -> None:
        active_timer.missed_region = region
        raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert active_timer.missed_region is None
    assert counted(active_timer) == {}


def test_non_callable_result_of_a_decorator_passes(active_timer) -> None:
    region = Region()
    region.decorate = lambda function: {"kept": function}

    made = region.cache_on_arguments()(len)

    assert made == {"kept": len}


def test_non_callable_decorator_passes() -> None:
    region = Region()
    region.decorate = None

    assert region.cache_on_arguments() is None


class Configured:
    """A region that gets its backend on demand."""

    name = "roles"

    def __init__(self, backend: Any) -> None:
        self.actual_backend = self.backend = backend

    @dogpile.wrap_configure
    def configure(self) -> str:
        return "configured"


class Backend:
    def get(self, key: str) -> str:
        return key


def test_backend_is_wrapped_when_its_region_is_configured(active_timer) -> None:
    region = Configured(type("Fresh", (Backend,), {})())
    before = region.backend.get("key")

    configured = region.configure()
    after = region.backend.get("key")

    assert (configured, before, after) == ("configured", "key", "key")
    (where,) = counted(active_timer)
    assert where[:3] == ("cache_calls", "roles", "backend")


def test_a_region_without_a_backend_is_counted_as_a_fault(
    active_timer, monkeypatch
) -> None:
    faults: list[Any] = []
    monkeypatch.setattr(dogpile, "count_fault", faults.append)
    region = Configured(None)
    del region.backend, region.actual_backend

    assert region.configure() == "configured"
    assert [call.__name__ for call in faults] == ["configure"]
