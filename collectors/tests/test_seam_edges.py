"""Seams where something is in the way, and what is said of them."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

import pytest
import wrapt

from keylag_otel import seam as seams
from keylag_otel.clock import Clock
from keylag_otel.seam import Seam, bind_all, when_imported
from keylag_otel.wrappers import noted


def _count(clock: Clock, args: object, kwargs: object) -> None:
    clock.count(1)


def _count_other(clock: Clock, args: object, kwargs: object) -> None:
    clock.count(0)


COUNT = (noted(_count),)
COUNT_OTHER = (noted(_count_other),)
FUNCTION = Seam("keylag_edges", "function", COUNT)


class Callable:
    """What can be called, but is no function."""

    def __call__(self, *_: Any) -> str:
        return "called"


class Descriptor(Callable):
    """What a class makes a method of, as it does of functions."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return functools.partial(self, instance)


class Unsigned(Callable):
    """What does not say what it takes."""

    @property
    def __signature__(self) -> Any:
        raise ValueError


class Strange(Callable):
    """What refuses to be looked at."""

    @property
    def __wrapped__(self) -> Any:
        message = "do not look"
        raise RuntimeError(message)


@pytest.fixture
def library(monkeypatch) -> types.ModuleType:
    """A host library of all kinds of places."""

    class Thing:
        def method(self) -> str:
            return "method"

        @property
        def roles(self) -> str:
            return "roles"

        static = staticmethod(Callable())
        instance = Callable()
        descriptor = Descriptor()
        value = "value"
        strange = Strange()

    module = types.ModuleType("keylag_edges")
    module.Thing = Thing
    module.function = lambda: "function"
    module.instance = Callable()
    module.unsigned = Unsigned()
    monkeypatch.setitem(sys.modules, "keylag_edges", module)
    monkeypatch.setattr(seams, "_COVERED", {})
    return module


def bound(seam: Seam) -> seams.Binding:
    (binding,) = bind_all([seam])
    return binding


def test_binding_twice_watches_once(library, running) -> None:
    binding = bound(FUNCTION)
    binding.bind(library)

    assert (library.function(), running.counts) == ("function", [0, 1])


@pytest.mark.parametrize(
    ("path", "options", "reason"),
    [
        ("Thing.roles", {}, "it is a property now"),
        ("Thing.method", {"kind": "property"}, "it is no property now"),
        ("Thing.value", {}, "it cannot be called any more"),
        ("Thing", {}, "it is a class now"),
        ("Thing.instance", {}, "it is no method any more"),
        ("Thing.instance", {"kind": "descriptor"}, "it is no method any more"),
        ("Thing.static", {"kind": "descriptor"}, "it is no method any more"),
        ("unsigned", {"expects": ("a", "b")}, "it no longer takes a, b"),
    ],
)
def test_what_is_not_what_it_was_is_left_and_described(
    library, caplog, path, options, reason
) -> None:
    binding = bound(Seam("keylag_edges", path, COUNT, **options))

    assert (binding.state, binding.reason) == ("changed", reason)
    assert f"does not watch keylag_edges:{path}, because {reason};" in caplog.text


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("instance", "function"),
        ("Thing.descriptor", "descriptor"),
        ("Thing.method", "function"),
    ],
)
def test_what_can_be_watched_is(library, path, kind) -> None:
    assert bound(Seam("keylag_edges", path, COUNT, kind=kind)).state == "bound"


def test_a_missing_place_is_described(library) -> None:
    binding = bound(Seam("keylag_edges", "Thing.gone", COUNT))

    assert (binding.state, binding.reason) == ("missing", "it is not in this release")


def test_what_raises_while_it_is_bound_is_left_and_described(library, caplog) -> None:
    def broken(call: Any) -> Any:
        message = "no such thing"
        raise LookupError(message)

    before = library.function
    by_maker = bound(Seam("keylag_edges", "function", (broken,)))
    by_host = bound(Seam("keylag_edges", "Thing.strange", COUNT))

    assert (by_maker.state, by_maker.reason) == (
        "failed",
        "binding it raised LookupError: no such thing",
    )
    assert (by_host.state, by_host.reason) == (
        "failed",
        "binding it raised RuntimeError: do not look",
    )
    assert "keylag_edges:function" in caplog.text
    assert library.function is before


def somebodys(call: Any) -> Any:
    """Wrap a call as somebody else may, who says what is wrapped."""

    @functools.wraps(call)
    def wrapped() -> Any:
        return call()

    return wrapped


def test_what_stayed_beneath_somebodys_wrapper_is_not_watched_twice(
    library, running
) -> None:
    original = library.function
    first = bound(FUNCTION)
    library.function = theirs = somebodys(library.function)
    first.unbind()

    again = bound(FUNCTION)

    assert (first.state, again.state) == ("unbound", "bound")
    assert library.function is theirs
    assert (theirs(), running.counts) == ("function", [0, 1])
    assert seams._COVERED == {}

    library.function = theirs.__wrapped__
    again.unbind()

    assert library.function is original


def test_another_seam_of_the_same_place_is_bound_besides(library, running) -> None:
    first = bound(FUNCTION)
    library.function = somebodys(library.function)
    first.unbind()

    other = bound(Seam("keylag_edges", "function", COUNT_OTHER))

    assert other.state == "bound"
    assert (library.function(), running.counts) == ("function", [1, 1])


@pytest.mark.parametrize("first_off", [0, 1])
def test_two_seams_of_one_place_come_off_in_any_order(library, first_off) -> None:
    original = library.function
    both = bind_all([FUNCTION, Seam("keylag_edges", "function", COUNT_OTHER)])

    for binding in (both[first_off], both[1 - first_off]):
        binding.unbind()

    assert library.function is original
    assert seams._COVERED == {}


def test_a_wrapper_that_names_itself_is_no_endless_loop() -> None:
    def call() -> None: ...

    call.__wrapped__ = call

    assert len(list(seams._wrapped_in(call))) == 100


def test_what_cannot_be_put_back_is_told_and_left(library, caplog) -> None:
    binding = bound(FUNCTION)
    binding._owner = object()

    binding.unbind()

    assert binding.state == "unbound"
    assert "keylag could not unbind function; the service goes on" in caplog.text


def test_what_an_import_hook_raises_is_told(tmp_path, monkeypatch, caplog) -> None:
    (tmp_path / "keylag_hooked.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    when_imported("keylag_hooked", lambda module: module.gone)

    import keylag_hooked

    assert keylag_hooked
    assert "keylag could not watch the import of keylag_hooked" in caplog.text


def test_an_import_that_cannot_be_waited_for_is_told(monkeypatch, caplog) -> None:
    monkeypatch.setattr(wrapt, "register_post_import_hook", None)

    when_imported("keylag_never", print)

    assert "keylag could not wait for the import of keylag_never" in caplog.text
