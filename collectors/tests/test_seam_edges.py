"""Seams that cannot be bound, and the reasons that are logged."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

import pytest
import wrapt

from keylag_otel import seam as seams
from keylag_otel.request_timer import RequestTimer
from keylag_otel.seam import Seam, bind_all, when_imported
from keylag_otel.wrappers import before_call


def _count(timer: RequestTimer, args: object, kwargs: object) -> None:
    timer.count(1)


def _count_other(timer: RequestTimer, args: object, kwargs: object) -> None:
    timer.count(0)


COUNT = (before_call(_count),)
COUNT_OTHER = (before_call(_count_other),)
FUNCTION = Seam("keylag_edges", "function", COUNT)


class Callable:
    """A callable that is no function."""

    def __call__(self, *_: Any) -> str:
        return "called"


class Descriptor(Callable):
    """A callable descriptor, which becomes a method like a function."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return functools.partial(self, instance)


class Unsigned(Callable):
    """A callable without a signature."""

    @property
    def __signature__(self) -> Any:
        raise ValueError


class Strange(Callable):
    """A callable that raises when it is inspected."""

    @property
    def __wrapped__(self) -> Any:
        message = "do not look"
        raise RuntimeError(message)


@pytest.fixture
def library(monkeypatch) -> types.ModuleType:
    """A host library with all kinds of attributes."""

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


def test_binding_twice_wraps_once(library, active_timer) -> None:
    binding = bound(FUNCTION)
    binding.bind(library)

    assert (library.function(), active_timer.counts) == ("function", [0, 1])


@pytest.mark.parametrize(
    ("path", "options", "reason"),
    [
        ("Thing.roles", {}, "it is now a property"),
        ("Thing.method", {"kind": "property"}, "it is no longer a property"),
        ("Thing.value", {}, "it is no longer callable"),
        ("Thing", {}, "it is now a class"),
        ("Thing.instance", {}, "it is no longer a method"),
        ("Thing.instance", {"kind": "descriptor"}, "it is no longer a method"),
        ("Thing.static", {"kind": "descriptor"}, "it is no longer a method"),
        ("unsigned", {"expects": ("a", "b")}, "it no longer takes a, b"),
    ],
)
def test_changed_callable_is_skipped_with_a_reason(
    library, caplog, path, options, reason
) -> None:
    binding = bound(Seam("keylag_edges", path, COUNT, **options))

    assert (binding.state, binding.reason) == ("changed", reason)
    assert f"does not measure keylag_edges:{path}: {reason};" in caplog.text


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("instance", "function"),
        ("Thing.descriptor", "descriptor"),
        ("Thing.method", "function"),
    ],
)
def test_supported_callables_are_bound(library, path, kind) -> None:
    assert bound(Seam("keylag_edges", path, COUNT, kind=kind)).state == "bound"


def test_missing_seam_has_a_reason(library) -> None:
    binding = bound(Seam("keylag_edges", "Thing.gone", COUNT))

    assert (binding.state, binding.reason) == (
        "missing",
        "this release does not have it",
    )


def test_exception_while_binding_is_the_reason(library, caplog) -> None:
    def broken(call: Any) -> Any:
        message = "no such thing"
        raise LookupError(message)

    before = library.function
    by_maker = bound(Seam("keylag_edges", "function", (broken,)))
    by_host = bound(Seam("keylag_edges", "Thing.strange", COUNT))

    assert (by_maker.state, by_maker.reason) == (
        "failed",
        "binding raised LookupError: no such thing",
    )
    assert (by_host.state, by_host.reason) == (
        "failed",
        "binding raised RuntimeError: do not look",
    )
    assert "keylag_edges:function" in caplog.text
    assert library.function is before


def somebodys(call: Any) -> Any:
    """Wrap a call as another tool does, with `__wrapped__`."""

    @functools.wraps(call)
    def wrapped() -> Any:
        return call()

    return wrapped


def test_wrapper_beneath_that_of_others_is_reused(library, active_timer) -> None:
    original = library.function
    first = bound(FUNCTION)
    library.function = theirs = somebodys(library.function)
    first.unbind()

    again = bound(FUNCTION)

    assert (first.state, again.state) == ("unbound", "bound")
    assert library.function is theirs
    assert (theirs(), active_timer.counts) == ("function", [0, 1])
    assert seams._COVERED == {}

    library.function = theirs.__wrapped__
    again.unbind()

    assert library.function is original


def test_second_seam_of_a_callable_is_bound(library, active_timer) -> None:
    first = bound(FUNCTION)
    library.function = somebodys(library.function)
    first.unbind()

    other = bound(Seam("keylag_edges", "function", COUNT_OTHER))

    assert other.state == "bound"
    assert (library.function(), active_timer.counts) == ("function", [1, 1])


@pytest.mark.parametrize("first_off", [0, 1])
def test_two_seams_of_a_callable_unbind_in_any_order(library, first_off) -> None:
    original = library.function
    both = bind_all([FUNCTION, Seam("keylag_edges", "function", COUNT_OTHER)])

    for binding in (both[first_off], both[1 - first_off]):
        binding.unbind()

    assert library.function is original
    assert seams._COVERED == {}


def test_self_referential_wrapper_ends() -> None:
    def call() -> None: ...

    call.__wrapped__ = call

    assert len(list(seams._wrapper_chain(call))) == 100


def test_failure_to_unbind_is_logged(library, caplog) -> None:
    binding = bound(FUNCTION)
    binding._owner = object()

    binding.unbind()

    assert binding.state == "unbound"
    assert (
        "keylag could not unbind function; the service continues without it"
        in caplog.text
    )


def test_exception_of_an_import_hook_is_logged(tmp_path, monkeypatch, caplog) -> None:
    (tmp_path / "keylag_hooked.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    when_imported("keylag_hooked", lambda module: module.gone)

    import keylag_hooked

    assert keylag_hooked
    assert "keylag could not handle the import of keylag_hooked" in caplog.text


def test_failure_to_register_an_import_hook_is_logged(monkeypatch, caplog) -> None:
    monkeypatch.setattr(wrapt, "register_post_import_hook", None)

    when_imported("keylag_never", print)

    assert "keylag could not register for the import of keylag_never" in caplog.text
