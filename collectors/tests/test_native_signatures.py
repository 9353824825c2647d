"""Each callable of the C part tells its signature, which `make lint` compares."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

_native = pytest.importorskip("keylag_otel._native")

CALLABLES: dict[str, Any] = {
    name: thing for name, thing in vars(_native).items() if callable(thing)
}
METHODS = {
    f"{name}.{method}": thing
    for name, each in CALLABLES.items()
    if isinstance(each, type)
    for method, thing in vars(each).items()
    if callable(thing) and not method.startswith("__")
}


@pytest.mark.parametrize("name", [*CALLABLES, *METHODS])
def test_signature_is_known(name) -> None:
    assert inspect.signature({**CALLABLES, **METHODS}[name])
