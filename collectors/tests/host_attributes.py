"""All attributes of the instrumented libraries, and what Keylag left in them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

from keylag_otel.__main__ import HOSTS

#: A module or class, the name of an attribute, and what it is.
Attribute = tuple[Any, str, Any]

#: The packages that seams are in, and Flask's application.
PACKAGES = frozenset(
    seam.module.partition(".")[0] for seams in HOSTS.values() for seam in seams
)


def modules() -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in PACKAGES and isinstance(module, ModuleType):
            yield module


def classes() -> Iterator[type]:
    for each in gc.get_objects():
        if isinstance(each, type) and is_theirs(each):
            yield each


def is_theirs(kind: type) -> bool:
    """Return whether a class is of these packages."""
    return str(kind.__module__).partition(".")[0] in PACKAGES


def attributes() -> Iterator[Attribute]:
    """Yield all attributes of all modules and classes of these packages."""
    for owner in (*modules(), *classes()):
        for name, value in list(vars(owner).items()):
            yield owner, name, value


def snapshot() -> dict[tuple[int, str], Any]:
    return {(id(owner), name): value for owner, name, value in attributes()}


def changed(before: dict[tuple[int, str], Any]) -> list[str]:
    """Return the names of attributes that are not what they were, or gone, or new."""
    now = {(id(o), name): (o, value) for o, name, value in attributes()}
    owners = {owner for owner, _ in before}
    found = [
        f"{owner.__name__}.{name}"
        for (number, name), (owner, value) in now.items()
        if number in owners and before.get((number, name)) is not value
    ]
    return [*found, *(f"gone: {name}" for _, name in before.keys() - now.keys())]


def ours() -> list[str]:
    """Return the names of attributes that are Keylag's, wherever they are."""
    return [
        f"{owner.__module__ if isinstance(owner, type) else ''} {owner.__name__}.{name}"
        for owner, name, value in attributes()
        if is_ours(value) or name.startswith("_keylag")
    ]


def is_ours(value: Any) -> bool:
    """Return whether a function, or that of a property or method, is Keylag's."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, (staticmethod, classmethod, MethodType)):
        value = value.__func__
    if isinstance(value, FunctionType):
        return "keylag_otel" in value.__code__.co_filename
    return str(type(value).__module__).startswith("keylag_otel")


def object_attributes(each: Any) -> dict[str, Any]:
    try:
        return object.__getattribute__(each, "__dict__")
    except AttributeError:
        return {}


def objects_left() -> list[str]:
    """Return the types of the host's objects that have something of Keylag's."""
    return [
        type(each).__name__
        for each in gc.get_objects()
        if is_theirs(type(each))
        for name, value in list(object_attributes(each).items())
        if name.startswith("_keylag") or is_ours(value)
    ]
