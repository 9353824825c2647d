"""Patches made while the host runs are undone and redone."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from keylag_otel import patches


class Host:
    """An object of a host; `call` is of its class, `own` its own."""

    def __init__(self) -> None:
        self.own = "theirs"

    def call(self) -> str:
        return "theirs"


class Ours:
    """A wrapper of a host's object, which can be switched off."""

    is_enabled = True

    def __call__(self) -> str:
        return "ours"


@pytest.fixture(autouse=True)
def nothing_patched(monkeypatch) -> None:
    """No patches but those of the test."""
    monkeypatch.setattr(patches, "_targets", [])
    monkeypatch.setattr(patches, "_restored", [])
    monkeypatch.setattr(patches, "_decorated", {})
    monkeypatch.setattr(patches, "_decorators", WeakKeyDictionary())


@pytest.fixture
def module(monkeypatch) -> Iterator[types.ModuleType]:
    """A module of the host."""
    made = types.ModuleType("keylag_patched")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def apply(host: Any) -> None:
    patches.replace(host, "own", "ours")
    patches.replace(host, "call", Ours())


def seen(host: Any) -> tuple[Any, ...]:
    return host.own, host.call(), "call" in vars(host)


THEIRS = ("theirs", "theirs", False)
PATCHED = ("ours", "ours", True)


def test_target_is_restored_and_patched_again() -> None:
    host = Host()
    before = dict(vars(host))

    states = []
    patches.patch(host, apply)
    for step in (patches.undo, patches.redo, patches.undo, patches.undo):
        states.append((seen(host), patches.is_patched(host)))
        step()

    assert states == [
        (PATCHED, True),
        (THEIRS, False),
        (PATCHED, True),
        (THEIRS, False),
    ]
    assert vars(host) == before


def test_redo_keeps_patched_targets() -> None:
    calls: list[Any] = []
    host = Host()

    patches.patch(host, lambda host: (apply(host), calls.append(host)))
    patches.redo()

    assert calls == [host]


def test_undo_restores_the_first_original() -> None:
    host = Host()

    for value in ("first of ours", "last of ours"):
        patches.patch(
            host, lambda host, value=value: patches.replace(host, "own", value)
        )
    last = host.own
    patches.undo()

    assert (last, host.own) == ("last of ours", "theirs")

    patches.redo()

    assert host.own == "last of ours"


def test_undo_keeps_later_replacements_and_disables_the_wrapper() -> None:
    host, other = Host(), Host()
    for each in (host, other):
        patches.patch(each, apply)
    ours, host.call, other.own = host.call, lambda: "somebody's", "somebody's"

    patches.undo()

    assert seen(host) == ("theirs", "somebody's", True)
    assert seen(other) == ("somebody's", "theirs", False)
    assert ours.is_enabled is False


def test_patched_target_can_be_garbage_collected() -> None:
    host, other = Host(), Host()
    patches.patch(host, apply)
    patches.patch(other, apply)

    del host
    gc.collect()

    assert [each.target() for each in patches._targets] == [other]
    patches.undo()
    assert seen(other) == THEIRS


def test_undo_runs_in_reverse_order_and_redo_in_order() -> None:
    order: list[str] = []

    class RecordedHost(Host):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __delattr__(self, name: str) -> None:
            if name == "call":
                order.append(f"undo {self.name}")
            super().__delattr__(name)

    def record_patch(host: Any) -> None:
        order.append(f"patch {host.name}")
        apply(host)

    hosts = RecordedHost("a"), RecordedHost("b")
    for host in hosts:
        patches.patch(host, record_patch)
    patches.undo()
    patches.redo()

    assert order == ["patch a", "patch b", "undo b", "undo a", "patch a", "patch b"]


def test_failing_target_does_not_stop_the_others(caplog) -> None:
    class Stubborn(Host):
        def __delattr__(self, name: str) -> None:
            raise RuntimeError

    hosts = Host(), Stubborn(), Host()
    for host in hosts:
        patches.patch(host, apply)

    patches.undo()

    assert [seen(host) == THEIRS for host in hosts] == [True, False, True]
    assert "keylag could not undo a patch" in caplog.text

    patches._targets[0] = patches._targets[0]._replace(apply=lambda _: 1 / 0)
    caplog.clear()
    patches.redo()

    assert [seen(host) == PATCHED for host in hosts] == [False, True, True]
    assert "keylag could not apply a patch again" in caplog.text


def test_undo_restores_imported_decorators(module, monkeypatch) -> None:
    # Python has None here for what must not be imported.
    monkeypatch.setitem(sys.modules, "keylag_barred", None)
    ours, theirs = Ours(), object()
    module.decorate = module.alias = ours
    module.other = Ours()
    patches.register_decorator(ours, theirs)

    patches.undo()
    undone = (module.decorate, module.alias)
    patches.redo()

    assert undone == (theirs, theirs)
    assert (module.decorate, module.alias) == (ours, ours)
    assert isinstance(module.other, Ours)
    assert patches._restored == []


def test_undo_restores_decorated_functions(module) -> None:
    class Thing:
        class Inner:
            def call(self) -> None: ...

    function = Thing.Inner.call
    function.__module__, function.__qualname__ = module.__name__, "Thing.Inner.call"
    ours, theirs = Ours(), object()
    module.Thing, Thing.Inner.call = Thing, ours
    patches.register_decorated(function, ours, theirs)

    patches.undo()
    undone = Thing.Inner.call
    patches.redo()

    assert undone is theirs
    assert Thing.Inner.call is ours


def test_undo_ignores_removed_functions(module) -> None:
    def call() -> None: ...

    def gone() -> None: ...

    def elsewhere() -> None: ...

    for function, path in ((call, "call"), (gone, "Gone.call"), (elsewhere, "call")):
        function.__module__, function.__qualname__ = module.__name__, path
    elsewhere.__module__ = "keylag_never_imported"
    for function in (call, gone, elsewhere):
        patches.register_decorated(function, Ours(), object())
    module.call = call

    patches.undo()
    patches.redo()

    assert module.call is call
    assert patches._restored == []


def test_redo_keeps_replacements_made_after_undo(module) -> None:
    ours, theirs, somebodys = Ours(), object(), object()
    module.decorate = ours
    patches.register_decorator(ours, theirs)

    patches.undo()
    module.decorate = somebodys
    patches.redo()

    assert module.decorate is somebodys
