"""Objects of a host that are watched once they are there, and left as they were.

Seams are places in modules.  What is only there when the host runs, as its
application and the backends of its cache, is patched by a seam's maker, and undone
and redone from here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple
from weakref import WeakKeyDictionary, ref

from keylag_otel.guard import attempt

_MISSING = object()
#: Where a target keeps what it had: name to the value before and the one now.
_KEPT = "_keylag_replaced"

Apply = Callable[[Any], None]


class _Target(NamedTuple):
    """An object that is patched, which is not kept alive, and what patches it."""

    target: ref[Any]
    apply: Apply


#: In the order in which they were patched.
_targets: list[_Target] = []

#: The last of our twins of each function that was decorated, and what it is the
#: twin of; by the function's module and qualified name.
_decorated: dict[tuple[str, str], tuple[Any, Any]] = {}

#: Decorators of ours, which modules may have under any name, and the host's own.
_decorators: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


class _Swapped(NamedTuple):
    """An attribute for which `undo` has put back the host's own."""

    owner: Any
    name: str
    ours: Any
    theirs: Any


_swapped: list[_Swapped] = []


def patch(target: Any, apply: Apply) -> None:
    """Let `apply` replace attributes of a target, and again after `undo`."""

    def forget(gone: ref[Any]) -> None:
        _targets[:] = [each for each in _targets if each.target is not gone]

    _targets[:] = [each for each in _targets if each.target() is not target]
    _targets.append(_Target(ref(target, forget), apply))
    apply(target)


def replace(target: Any, name: str, value: Any) -> None:
    """Set an attribute until `undo`."""
    kept = vars(target).get(_KEPT)
    if kept is None:
        kept = {}
        setattr(target, _KEPT, kept)
    before = kept[name][0] if name in kept else vars(target).get(name, _MISSING)
    kept[name] = before, value
    setattr(target, name, value)


def is_patched(target: Any) -> bool:
    """Return whether this very object has attributes that were replaced."""
    return _KEPT in vars(target)


def remember_decorator(ours: Any, theirs: Any) -> None:
    """Remember which decorator of the host's is behind one of ours."""
    _decorators[ours] = theirs


def remember_decorated(function: Any, ours: Any, theirs: Any) -> None:
    """Remember what a function was made into by a decorator of the host's."""
    _decorated[function.__module__, function.__qualname__] = ours, theirs


def undo() -> None:
    """Put back what each object had, unless somebody has set it since."""
    for each in reversed(_targets):
        target = each.target()
        if target is not None and is_patched(target):
            attempt("put back what was patched", _put_back, target)
    for place in (*_decorators_in_modules(), *_decorated_by_name()):
        attempt(f"put back {place.name}", _swap, place)


def redo() -> None:
    """Patch again what `undo` has left as it was."""
    for target, apply in [(each.target(), each.apply) for each in _targets]:
        if target is not None and not is_patched(target):
            attempt("patch again what was put back", apply, target)
    while _swapped:
        owner, name, ours, theirs = _swapped.pop()
        if vars(owner).get(name) is theirs:
            setattr(owner, name, ours)


def _put_back(target: Any) -> None:
    kept = vars(target)[_KEPT]
    delattr(target, _KEPT)
    for name, (before, value) in kept.items():
        if vars(target).get(name) is not value:
            _switch_off(value)
        elif before is _MISSING:
            delattr(target, name)
        else:
            setattr(target, name, before)


def _switch_off(value: Any) -> None:
    """Let what stays beneath somebody else's wrapper measure nothing."""
    if hasattr(value, "is_on"):
        value.is_on = False


def _decorators_in_modules() -> Iterator[_Swapped]:
    by_id = {id(ours): (ours, theirs) for ours, theirs in list(_decorators.items())}
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in by_id:
                yield _Swapped(module, name, *by_id[id(value)])


def _decorated_by_name() -> Iterator[_Swapped]:
    for (module, path), (ours, theirs) in list(_decorated.items()):
        *owners, name = path.split(".")
        owner: Any = sys.modules.get(module)
        for part in owners:
            owner = getattr(owner, part, None)
        if owner is not None and vars(owner).get(name) is ours:
            yield _Swapped(owner, name, ours, theirs)


def _swap(place: _Swapped) -> None:
    setattr(place.owner, place.name, place.theirs)
    _swapped.append(place)
