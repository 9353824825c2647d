"""What is patched while the host runs is put back, and patched again."""

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
    """What stands for something of the host, and can be switched off."""

    is_on = True

    def __call__(self) -> str:
        return "ours"


@pytest.fixture(autouse=True)
def nothing_patched(monkeypatch) -> None:
    """No patches but those of the test."""
    monkeypatch.setattr(patches, "_targets", [])
    monkeypatch.setattr(patches, "_swapped", [])
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


def test_a_target_is_put_back_and_patched_again() -> None:
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


def test_a_target_that_is_patched_stays_so() -> None:
    calls: list[Any] = []
    host = Host()

    patches.patch(host, lambda host: (apply(host), calls.append(host)))
    patches.redo()

    assert calls == [host]


def test_what_was_replaced_twice_gets_its_first_value_back() -> None:
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


def test_what_somebody_set_since_stays_and_is_switched_off() -> None:
    host, other = Host(), Host()
    for each in (host, other):
        patches.patch(each, apply)
    ours, host.call, other.own = host.call, lambda: "somebody's", "somebody's"

    patches.undo()

    assert seen(host) == ("theirs", "somebody's", True)
    assert seen(other) == ("somebody's", "theirs", False)
    assert ours.is_on is False


def test_a_target_is_not_kept_alive() -> None:
    host, other = Host(), Host()
    patches.patch(host, apply)
    patches.patch(other, apply)

    del host
    gc.collect()

    assert [each.target() for each in patches._targets] == [other]
    patches.undo()
    assert seen(other) == THEIRS


def test_targets_are_put_back_last_first_and_patched_first_first() -> None:
    order: list[str] = []

    class Told(Host):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __delattr__(self, name: str) -> None:
            if name == "call":
                order.append(f"undo {self.name}")
            super().__delattr__(name)

    def told(host: Any) -> None:
        order.append(f"patch {host.name}")
        apply(host)

    hosts = Told("a"), Told("b")
    for host in hosts:
        patches.patch(host, told)
    patches.undo()
    patches.redo()

    assert order == ["patch a", "patch b", "undo b", "undo a", "patch a", "patch b"]


def test_a_target_that_fails_does_not_stop_the_others(caplog) -> None:
    class Stubborn(Host):
        def __delattr__(self, name: str) -> None:
            raise RuntimeError

    hosts = Host(), Stubborn(), Host()
    for host in hosts:
        patches.patch(host, apply)

    patches.undo()

    assert [seen(host) == THEIRS for host in hosts] == [True, False, True]
    assert "keylag could not put back what was patched" in caplog.text

    patches._targets[0] = patches._targets[0]._replace(apply=lambda _: 1 / 0)
    caplog.clear()
    patches.redo()

    assert [seen(host) == PATCHED for host in hosts] == [False, True, True]
    assert "keylag could not patch again what was put back" in caplog.text


def test_a_decorator_is_the_hosts_again_wherever_it_was_imported(
    module, monkeypatch
) -> None:
    # Python has None here for what must not be imported.
    monkeypatch.setitem(sys.modules, "keylag_barred", None)
    ours, theirs = Ours(), object()
    module.decorate = module.alias = ours
    module.other = Ours()
    patches.remember_decorator(ours, theirs)

    patches.undo()
    undone = (module.decorate, module.alias)
    patches.redo()

    assert undone == (theirs, theirs)
    assert (module.decorate, module.alias) == (ours, ours)
    assert isinstance(module.other, Ours)
    assert patches._swapped == []


def test_a_decorated_function_is_the_hosts_again_where_it_was_defined(module) -> None:
    class Thing:
        class Inner:
            def call(self) -> None: ...

    function = Thing.Inner.call
    function.__module__, function.__qualname__ = module.__name__, "Thing.Inner.call"
    ours, theirs = Ours(), object()
    module.Thing, Thing.Inner.call = Thing, ours
    patches.remember_decorated(function, ours, theirs)

    patches.undo()
    undone = Thing.Inner.call
    patches.redo()

    assert undone is theirs
    assert Thing.Inner.call is ours


def test_what_is_not_there_any_more_is_left(module) -> None:
    def call() -> None: ...

    def gone() -> None: ...

    def elsewhere() -> None: ...

    for function, path in ((call, "call"), (gone, "Gone.call"), (elsewhere, "call")):
        function.__module__, function.__qualname__ = module.__name__, path
    elsewhere.__module__ = "keylag_never_imported"
    for function in (call, gone, elsewhere):
        patches.remember_decorated(function, Ours(), object())
    module.call = call

    patches.undo()
    patches.redo()

    assert module.call is call
    assert patches._swapped == []


def test_what_somebody_set_after_undo_is_not_replaced_by_redo(module) -> None:
    ours, theirs, somebodys = Ours(), object(), object()
    module.decorate = ours
    patches.remember_decorator(ours, theirs)

    patches.undo()
    module.decorate = somebodys
    patches.redo()

    assert module.decorate is somebodys
