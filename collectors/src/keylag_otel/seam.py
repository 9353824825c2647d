"""A seam: one named place in a host library, and how it is watched there.

*What* is watched is data, the tables in `keylag_otel.seams`; *how* is one of
the makers in `keylag_otel.wrappers`.  A seam is bound when its module is
imported, so that instrumenting imports nothing; unbinding walks the same list.
"""

from __future__ import annotations

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
    """

    module: str
    path: str
    makers: tuple[Maker, ...]
    optional: bool = False


@dataclass
class Binding:
    """A seam in this process, and what was there before it was bound."""

    seam: Seam
    state: str = "waiting"
    _owner: Any = None
    _original: Any = None
    _watched: Any = field(default=None, repr=False)

    def bind(self, module: Any) -> None:
        """Watch the seam; if it is not there, say so and leave it."""
        if self.state == "bound":
            return
        *owners, name = self.seam.path.split(".")
        try:
            owner = module
            for part in owners:
                owner = getattr(owner, part)
            self._original = vars(owner)[name]
        except (AttributeError, KeyError):
            self.state = "missing"
            level = logging.DEBUG if self.seam.optional else logging.WARNING
            LOG.log(
                level,
                "keylag cannot see %s:%s in this release; its time goes to "
                "whatever surrounds it",
                self.seam.module,
                self.seam.path,
            )
            return
        self._owner = owner
        self._watched = _watch(self._original, self.seam.makers)
        setattr(owner, name, self._watched)
        self.state = "bound"

    def unbind(self) -> None:
        """Put back what was there, unless somebody has wrapped it since."""
        name = self.seam.path.rpartition(".")[2]
        if self.state == "bound" and vars(self._owner).get(name) is self._watched:
            setattr(self._owner, name, self._original)
        self.state = "unbound"


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
