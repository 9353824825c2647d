"""Binding and unbinding of seams."""

from __future__ import annotations

import sys
import types
from dataclasses import replace

import pytest

from keylag_otel.request_timer import RequestTimer
from keylag_otel.seam import Seam, bind_all
from keylag_otel.wrappers import before_call


def _count(timer: RequestTimer, args: object, kwargs: object) -> None:
    timer.count(1)


COUNT = (before_call(_count),)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A host library of a function and a class."""
    module = types.ModuleType("keylag_host")

    class Thing:
        def method(self, first: str = "method", *, second: str = "") -> str:
            return first + second

        @property
        def roles(self) -> str:
            return "roles"

        @classmethod
        def make(cls) -> str:
            return cls.__name__

        @staticmethod
        def plain() -> str:
            return "plain"

    module.Thing = Thing
    module.function = lambda: "function"
    module.compiled = min
    monkeypatch.setitem(sys.modules, "keylag_host", module)
    return module


def kind_of(path: str) -> str:
    return "property" if path == "Thing.roles" else "function"


@pytest.mark.parametrize(
    ("path", "use", "answer"),
    [
        ("function", lambda m: m.function(), "function"),
        ("Thing.method", lambda m: m.Thing().method(), "method"),
        ("Thing.roles", lambda m: m.Thing().roles, "roles"),
        ("Thing.make", lambda m: m.Thing.make(), "Thing"),
        ("Thing.plain", lambda m: m.Thing.plain(), "plain"),
    ],
)
def test_each_kind_of_callable_can_be_bound_and_unbound(
    library, active_timer: RequestTimer, path, use, answer
) -> None:
    (binding,) = bind_all([Seam("keylag_host", path, COUNT, kind=kind_of(path))])

    assert use(library) == answer
    assert active_timer.counts[1] == 1

    binding.unbind()

    assert use(library) == answer
    assert active_timer.counts[1] == 1


def test_missing_seam_is_logged_and_skipped(library, caplog) -> None:
    gone, there = bind_all(
        [Seam("keylag_host", "Gone.method", COUNT), Seam("keylag_host", "function", ())]
    )

    assert gone.state == "missing"
    assert there.state == "bound"
    assert "keylag_host:Gone.method" in caplog.text


@pytest.mark.parametrize(
    ("path", "expects"),
    [
        ("function", ()),
        ("Thing.method", ("self", "first")),
        ("Thing.method", ("self", "first", "second")),
        ("Thing.roles", ("self",)),
        ("Thing.make", ("cls",)),
        ("Thing.plain", ()),
        ("compiled", ("anything",)),
    ],
)
def test_callable_with_expected_parameters_is_bound(library, path, expects) -> None:
    seam = Seam("keylag_host", path, COUNT, expects=expects, kind=kind_of(path))
    (binding,) = bind_all([seam])

    assert (binding.state, binding.reason) == ("bound", "")
    binding.unbind()


@pytest.mark.parametrize(
    ("path", "expects", "lacking"),
    [
        ("Thing.method", ("self", "renamed"), "renamed"),
        ("Thing.method", ("self", "second"), "second"),
        ("Thing.roles", ("this",), "this"),
        ("function", ("one", "two"), "one, two"),
    ],
)
def test_callable_with_other_parameters_is_logged_and_skipped(
    library, caplog, path, expects, lacking
) -> None:
    before = dict(vars(library.Thing)), library.function
    seam = Seam("keylag_host", path, COUNT, expects=expects, kind=kind_of(path))
    (binding,) = bind_all([replace(seam, optional=True)])

    assert binding.state == "changed"
    assert binding.reason == f"it no longer takes {lacking}"
    assert f"keylag_host:{path}" in caplog.text
    assert before == (dict(vars(library.Thing)), library.function)

    binding.unbind()

    assert before == (dict(vars(library.Thing)), library.function)


def test_missing_optional_seam_is_not_logged(library, caplog) -> None:
    bind_all([Seam("keylag_host", "gone", COUNT, optional=True)])

    assert not caplog.text


def test_a_module_is_bound_when_it_is_imported(tmp_path, monkeypatch) -> None:
    (tmp_path / "keylag_late.py").write_text("def call(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)

    (binding,) = bind_all([Seam("keylag_late", "call", COUNT)])
    waiting = binding.state
    import keylag_late

    assert waiting == "waiting"
    assert binding.state == "bound"
    assert keylag_late.call() == 1
    binding.unbind()


def test_module_imported_after_unbinding_is_not_bound(tmp_path, monkeypatch) -> None:
    (tmp_path / "keylag_later.py").write_text("def call(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    (binding,) = bind_all([Seam("keylag_later", "call", COUNT)])

    binding.unbind()
    import keylag_later

    assert not hasattr(keylag_later.call, "__wrapped__")


def test_unbind_keeps_wrappers_of_others(library) -> None:
    (binding,) = bind_all([Seam("keylag_host", "function", COUNT)])
    later = library.function = lambda: "somebody else's"

    binding.unbind()

    assert library.function is later
