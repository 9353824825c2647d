"""Patches of objects that exist only while the host runs; undone and redone here.

Seams are places in modules.  The application and the cache backends exist only at
run time; the wrapper of a seam patches them through this module.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple
from weakref import WeakKeyDictionary, ref

from keylag_otel.guard import attempt

_MISSING = object()
#: The attribute of a patched object with (original, replacement) by name.
_REPLACED = "_keylag_replaced"

Apply = Callable[[Any], None]


class _Target(NamedTuple):
    """A weak reference to a patched object, and the function that patches it."""

    target: ref[Any]
    apply: Apply


#: In the order of patching.
_targets: list[_Target] = []

#: The last wrapper of each memoized function, and what it wraps, by the module and
#: qualified name of the function.
_decorated: dict[tuple[str, str], tuple[Any, Any]] = {}

#: The host's decorator by our wrapper of it; modules may have imported that.
_decorators: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


class _Restored(NamedTuple):
    """An attribute whose original `undo` has restored."""

    owner: Any
    name: str
    wrapper: Any
    original: Any


_restored: list[_Restored] = []


def patch(target: Any, apply: Apply) -> None:
    """Call `apply(target)` now, and again in each `redo` after an `undo`."""

    def forget(gone: ref[Any]) -> None:
        _targets[:] = [each for each in _targets if each.target is not gone]

    _targets[:] = [each for each in _targets if each.target() is not target]
    _targets.append(_Target(ref(target, forget), apply))
    apply(target)


def replace(target: Any, name: str, value: Any) -> None:
    """Set an attribute of a target; `undo` restores the original."""
    replaced = vars(target).get(_REPLACED)
    if replaced is None:
        replaced = {}
        setattr(target, _REPLACED, replaced)
    original = (
        replaced[name][0] if name in replaced else vars(target).get(name, _MISSING)
    )
    replaced[name] = original, value
    setattr(target, name, value)


def is_patched(target: Any) -> bool:
    """Return whether this object itself is patched, not only its class."""
    return _REPLACED in vars(target)


def register_decorator(wrapper: Any, original: Any) -> None:
    """Register the host's decorator that a wrapper replaces."""
    _decorators[wrapper] = original


def register_decorated(function: Any, wrapper: Any, original: Any) -> None:
    """Register the wrapper of a memoized function, and what it wraps."""
    _decorated[function.__module__, function.__qualname__] = wrapper, original


def undo() -> None:
    """Restore the originals, except where others have replaced the attribute since."""
    for each in reversed(_targets):
        target = each.target()
        if target is not None and is_patched(target):
            attempt("undo a patch", _restore, target)
    for place in (*_decorators_in_modules(), *_decorated_by_name()):
        attempt(f"restore {place.name}", _restore_original, place)


def redo() -> None:
    """Apply the patches again that `undo` has reverted."""
    for target, apply in [(each.target(), each.apply) for each in _targets]:
        if target is not None and not is_patched(target):
            attempt("apply a patch again", apply, target)
    while _restored:
        owner, name, wrapper, original = _restored.pop()
        if vars(owner).get(name) is original:
            setattr(owner, name, wrapper)


def _restore(target: Any) -> None:
    replaced = vars(target)[_REPLACED]
    delattr(target, _REPLACED)
    for name, (original, value) in replaced.items():
        if vars(target).get(name) is not value:
            _disable_wrapper(value)
        elif original is _MISSING:
            delattr(target, name)
        else:
            setattr(target, name, original)


def _disable_wrapper(value: Any) -> None:
    # It stays in use beneath another wrapper.
    if hasattr(value, "is_enabled"):
        value.is_enabled = False


def _decorators_in_modules() -> Iterator[_Restored]:
    by_id = {
        id(wrapper): (wrapper, original)
        for wrapper, original in list(_decorators.items())
    }
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in by_id:
                yield _Restored(module, name, *by_id[id(value)])


def _decorated_by_name() -> Iterator[_Restored]:
    for (module, path), (wrapper, original) in list(_decorated.items()):
        *owners, name = path.split(".")
        owner: Any = sys.modules.get(module)
        for part in owners:
            owner = getattr(owner, part, None)
        if owner is not None and vars(owner).get(name) is wrapper:
            yield _Restored(owner, name, wrapper, original)


def _restore_original(place: _Restored) -> None:
    setattr(place.owner, place.name, place.original)
    _restored.append(place)
