"""A host that has changed still imports and works, and its seam has a reason."""

# The changed callables accept and ignore any arguments.
# ruff: noqa: ARG002, ARG005

from __future__ import annotations

import functools
import logging
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from itertools import count
from types import ModuleType
from typing import Any

import pytest

from keylag_otel import KeystoneInstrumentor, check, patches
from keylag_otel.__main__ import HOSTS
from keylag_otel.seam import Seam, bind_all, when_imported

SEAMS = {
    f"{host}:{seam.module}:{seam.path}": seam
    for host, seams in HOSTS.items()
    for seam in seams
}


class Raising:
    """A callable that raises for each attribute, and can be called."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        return "answer"


class Unsigned:
    """A callable without a signature."""

    @property
    def __signature__(self) -> Any:
        raise ValueError

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        return "answer"


def answer(*args: Any, **kwargs: Any) -> str:
    return "answer"


def refuse(*args: Any, **kwargs: Any) -> str:
    raise RuntimeError


async def later(*args: Any, **kwargs: Any) -> str:
    return "answer"


#: Objects that a host may have instead of the function of a seam.
STRANGE: dict[str, Any] = {
    "None": None,
    "a number": 7,
    "a class": type("Class", (), {"__init__": lambda self, *a, **k: None}),
    "a builtin": len,
    "a property that raises": property(refuse),
    "a property without a getter": property(None),
    "a callable without a signature": Unsigned(),
    "a callable that raises": Raising(),
    "a partial": functools.partial(answer),
    "a static method": staticmethod(answer),
    "a class method": classmethod(answer),
    "a function": answer,
    "a function that raises": refuse,
    "a coroutine function": later,
    "missing": ...,
}

_numbers = count()


@pytest.fixture(autouse=True)
def quiet(monkeypatch) -> None:
    """Patches of these hosts only, and no log of each."""
    monkeypatch.setattr(patches, "_targets", [])
    monkeypatch.setattr(patches, "_decorated", {})
    monkeypatch.setattr(logging.getLogger("keylag_otel"), "disabled", True)


def host(folder: Any, path: str) -> str:
    """Write a module with a changed object at a path; return its name."""
    name = f"keylag_host_{next(_numbers)}"
    *owners, last = path.split(".")
    lines = ["from test_changed_hosts import chosen"]
    lines += [f"{'    ' * depth}class {owner}:" for depth, owner in enumerate(owners)]
    indent = "    " * len(owners)
    lines += [f"{indent}if chosen() is not ...:", f"{indent}    {last} = chosen()"]
    (folder / f"{name}.py").write_text("\n".join(lines) + "\n")
    return name


CHOSEN: dict[str, Any] = {}


def chosen() -> Any:
    return CHOSEN["value"]


def used(module: ModuleType, path: str) -> list[Any]:
    """Use the object at a path in each way; return the outcomes."""
    *owners, name = path.split(".")
    owner: Any = module
    for part in owners:
        owner = getattr(owner, part)
    arguments: list[tuple[Any, ...] | None] = [None, (), ("argument", answer)]
    return [outcome(owner, name, given) for given in arguments]


def outcome(owner: Any, name: str, given: tuple[Any, ...] | None) -> Any:
    """Return a text or number, or the type of another value or exception."""
    try:
        value = getattr(owner() if isinstance(owner, type) else owner, name)
        value = value if given is None else value(*given)
        kept = isinstance(value, (str, int, type(None)))
    except Exception as error:  # noqa: BLE001 - that it is the same is what matters
        return type(error)
    return value if kept else callable(value)


@pytest.mark.parametrize("name", SEAMS)
def test_changed_host_imports_and_works(tmp_path, monkeypatch, name) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for kind, strange in STRANGE.items():
        monkeypatch.setitem(CHOSEN, "value", strange)
        plain, wrapper = (host(tmp_path, SEAMS[name].path) for _ in range(2))
        expected = used(import_module(plain), SEAMS[name].path)
        (binding,) = bind_all([replace(SEAMS[name], module=wrapper)])
        seen = used(import_module(wrapper), SEAMS[name].path)
        state = binding.state
        binding.unbind()
        patches.undo()

        assert (kind, seen) == (kind, expected)
        assert state in {"bound", "missing", "changed", "failed"}
        assert (kind, state == "bound") == (kind, not binding.reason)


def test_check_has_the_reason_of_a_seam_that_cannot_be_bound(monkeypatch) -> None:
    def maker(call: Any) -> Any:
        raise ValueError(call.__name__)

    module = ModuleType("keylag_host")
    module.call = answer
    monkeypatch.setitem(sys.modules, "keylag_host", module)

    (finding,) = check.find_seams(
        [Seam("keylag_host", "call", (maker,), optional=True)]
    )

    assert (finding.state, finding.ok) == ("failed", False)
    assert finding.reason == "binding raised ValueError: answer"
    assert module.call is answer


def test_raising_import_hook_is_logged_and_import_succeeds(
    tmp_path, monkeypatch, caplog
) -> None:
    (tmp_path / "keylag_hooked.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(logging.getLogger("keylag_otel"), "disabled", False)
    when_imported("keylag_hooked", refuse)

    assert import_module("keylag_hooked").value == 1
    assert "handle the import of keylag_hooked" in caplog.text


@pytest.mark.parametrize(
    "place",
    [
        "keylag_otel.telemetry.use_provider",
        "keylag_otel.traces.tracing.use_provider",
        "keylag_otel.process.start",
        "keylag_otel.patches.redo",
        "keylag_otel._warn_if_untested",
        "wrapt.register_post_import_hook",
    ],
)
def test_service_works_if_instrumenting_fails(monkeypatch, caplog, place) -> None:
    monkeypatch.setattr(logging.getLogger("keylag_otel"), "disabled", False)
    monkeypatch.setattr(KeystoneInstrumentor, "_instance", None)
    monkeypatch.setattr(KeystoneInstrumentor, "_active", [])
    monkeypatch.setattr(KeystoneInstrumentor, "seams", (Seam("no_module", "x", ()),))
    monkeypatch.setattr(place, refuse)

    KeystoneInstrumentor().instrument()
    KeystoneInstrumentor().uninstrument()

    assert "keylag could not" in caplog.text


def test_service_with_changed_entry_point_starts() -> None:
    code = (
        "import wrapt\n"
        "def change(module):\n"
        "    module.BaseAuthProtocol.__call__ = lambda self, *args: ['answer']\n"
        "wrapt.register_post_import_hook(change, 'keystonemiddleware.auth_token')\n"
        "from keylag_otel import AuthTokenInstrumentor\n"
        "AuthTokenInstrumentor().instrument()\n"
        "from keystonemiddleware.auth_token import AuthProtocol\n"
        "print(AuthProtocol.__new__(AuthProtocol)({}, None))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert run.stdout == "['answer']\n"
