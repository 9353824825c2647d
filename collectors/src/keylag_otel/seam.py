"""A seam: one named place in a host library, and how it is watched there.

*What* is watched is data, the tables in `keylag_otel.seams`; *how* is one of
the makers in `keylag_otel.wrappers`.  A seam is bound when its module is
imported, so that instrumenting imports nothing; unbinding walks the same list.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import wrapt

from keylag_otel.wrappers import Maker

LOG = logging.getLogger("keylag_otel")


@dataclass(frozen=True)
class Seam:
    """``module:path``, and the makers to apply, innermost first.

    ``optional`` seams exist only in some releases; they are not missed.
    ``expects`` names the first parameters, where a maker reads arguments by
    position; a place that takes others is not watched.
    """

    module: str
    path: str
    makers: tuple[Maker, ...]
    optional: bool = False
    expects: tuple[str, ...] = ()


@dataclass
class Binding:
    """A seam in this process, and what was there before it was bound.

    It is ``waiting`` until its module is imported, then ``bound``, ``missing`` or
    ``changed``, and ``unbound`` in the end.  ``reason`` says why it is not bound.
    """

    seam: Seam
    state: str = "waiting"
    reason: str = ""
    _owner: Any = None
    _original: Any = None
    _watched: Any = field(default=None, repr=False)

    def bind(self, module: Any) -> None:
        """Watch the seam; if it is not there or not the same, say so and leave it."""
        if self.state == "bound":
            return
        *owners, name = self.seam.path.split(".")
        try:
            owner = module
            for part in owners:
                owner = getattr(owner, part)
            self._original = vars(owner)[name]
        except (AttributeError, KeyError):
            level = logging.DEBUG if self.seam.optional else logging.WARNING
            self._leave("missing", "it is not in this release", level)
            return
        lacking = _lacking(self._original, self.seam.expects)
        if lacking:
            self._leave("changed", f"it no longer takes {', '.join(lacking)}")
            return
        self._owner = owner
        self._watched = _watch(self._original, self.seam.makers)
        setattr(owner, name, self._watched)
        self.state = "bound"

    def _leave(self, state: str, reason: str, level: int = logging.WARNING) -> None:
        self.state, self.reason = state, reason
        LOG.log(
            level,
            "keylag does not watch %s:%s, because %s; its time goes to whatever "
            "surrounds it",
            *(self.seam.module, self.seam.path, reason),
        )

    def unbind(self) -> None:
        """Put back what was there, unless somebody has wrapped it since."""
        name = self.seam.path.rpartition(".")[2]
        if self.state == "bound" and vars(self._owner).get(name) is self._watched:
            setattr(self._owner, name, self._original)
        self.state = "unbound"


def _lacking(original: Any, expected: tuple[str, ...]) -> list[str]:
    """Return the expected parameters that a place does not take at their position."""
    if not expected:
        return []
    try:
        taken = list(inspect.signature(_function(original)).parameters)
    except (TypeError, ValueError):
        return []  # a compiled function need not say what it takes
    return [
        name
        for position, name in enumerate(expected)
        if taken[position : position + 1] != [name]
    ]


def _function(original: Any) -> Any:
    """Return the function beneath a property, a class method or a static one."""
    return getattr(original, "fget", None) or getattr(original, "__func__", original)


def _watch(original: Any, makers: Iterable[Maker]) -> Any:
    """Apply the makers to a function, or to the getter of a property."""
    if isinstance(original, property) and original.fget is not None:
        return original.getter(_watch(original.fget, makers))
    if isinstance(original, (staticmethod, classmethod)):
        return type(original)(_watch(original.__func__, makers))
    for maker in makers:
        original = maker(original)
    return original


def bind_all(seams: Iterable[Seam]) -> list[Binding]:
    """Bind each seam now if its module is imported, else when it is."""
    bindings = [Binding(seam) for seam in seams]
    for binding in bindings:
        if binding.seam.module in sys.modules:
            binding.bind(sys.modules[binding.seam.module])
        else:
            wrapt.register_post_import_hook(
                _when_imported(binding), binding.seam.module
            )
    return bindings


def _when_imported(binding: Binding) -> Any:
    def bind(module: Any) -> None:
        if binding.state == "waiting":
            binding.bind(module)

    return bind
