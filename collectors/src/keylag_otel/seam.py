"""A seam: one named place in a host library, and how it is watched there.

*What* is watched is data, the tables in `keylag_otel.seams`; *how* is one of
the makers in `keylag_otel.wrappers`.  A seam is bound when its module is
imported, so that instrumenting imports nothing; unbinding walks the same list.
"""

from __future__ import annotations

import inspect
import logging
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Callable

import wrapt

from keylag_otel.guard import attempt
from keylag_otel.wrappers import Maker

LOG = logging.getLogger("keylag_otel")


@dataclass(frozen=True)
class Seam:
    """``module:path``, and the makers to apply, innermost first.

    ``optional`` seams exist only in some releases; they are not missed.
    ``expects`` names the first parameters, where a maker reads arguments by
    position; a place that takes others is not watched.  Nor is one that is not of
    its ``kind``: a "function", a "property", or a callable "descriptor".
    """

    module: str
    path: str
    makers: tuple[Maker, ...]
    optional: bool = False
    expects: tuple[str, ...] = ()
    kind: str = "function"


@dataclass
class Binding:
    """A seam in this process, and what was there before it was bound.

    It is ``waiting`` until its module is imported, then ``bound``, ``missing``,
    ``changed`` or, where binding raised, ``failed``; ``unbound`` in the end.
    ``reason`` says why it is not bound.
    """

    seam: Seam
    state: str = "waiting"
    reason: str = ""
    _owner: Any = None
    _original: Any = None
    _watched: Any = field(default=None, repr=False)

    def bind(self, module: Any) -> None:
        """Watch the seam; if that is not possible, say so and leave it.

        This runs while the host imports its modules, so it never raises.
        """
        if self.state == "bound":
            return
        try:
            self._bind(module)
        except Exception as error:
            self._leave("failed", f"binding it raised {_described(error)}")

    def _bind(self, module: Any) -> None:
        *owners, name = self.seam.path.split(".")
        try:
            owner = module
            for part in owners:
                owner = getattr(owner, part)
            original = vars(owner)[name]
        except (AttributeError, KeyError):
            level = logging.DEBUG if self.seam.optional else logging.WARNING
            self._leave("missing", "it is not in this release", level)
            return
        unlike = _unlike(original, self.seam, isinstance(owner, type))
        if unlike:
            self._leave("changed", unlike)
            return
        if not self._is_still_there(owner, original):
            watched = _watch(original, self.seam.makers)
            setattr(owner, name, watched)
            self._owner, self._original, self._watched = owner, original, watched
        self.state, self.reason = "bound", ""

    def _is_still_there(self, owner: Any, present: Any) -> bool:
        """Return whether the seam is watched beneath what somebody else put there."""
        for watched in map(id, _wrapped_in(present)):
            covered = _COVERED.get(watched)
            if covered is not None and covered.seam == self.seam:
                del _COVERED[watched]
                self._owner, self._original = owner, covered._original  # noqa: SLF001
                self._watched = covered._watched  # noqa: SLF001
                return True
        return False

    def _leave(self, state: str, reason: str, level: int = logging.WARNING) -> None:
        self.state, self.reason = state, reason
        LOG.log(
            level,
            "keylag does not watch %s:%s, because %s; its time goes to whatever "
            "surrounds it",
            *(self.seam.module, self.seam.path, reason),
        )

    def unbind(self) -> None:
        """Put back what was there, unless somebody has wrapped it since.

        What stays beneath that does nothing outside of a request that is measured.
        """
        if self.state == "bound":
            attempt(f"unbind {self.seam.path}", self._put_back)
        self.state = "unbound"

    def _put_back(self) -> None:
        name = self.seam.path.rpartition(".")[2]
        if vars(self._owner).get(name) is self._watched:
            setattr(self._owner, name, _uncovered(self._original))
        else:
            _COVERED[id(self._watched)] = self


#: Unbound, but still beneath what somebody else has put there; by what is there.
_COVERED: dict[int, Binding] = {}


def _uncovered(original: Any) -> Any:
    """Return what was there before any seam that has been unbound since."""
    while id(original) in _COVERED:
        original = _COVERED.pop(id(original))._original  # noqa: SLF001
    return original


def _wrapped_in(call: Any) -> Iterator[Any]:
    """Yield a callable, and what it says that it wraps."""
    for _ in range(100):  # somebody's wrapper may name itself
        if call is None:
            return
        yield call
        call = getattr(call, "__wrapped__", None)


def _described(error: BaseException) -> str:
    """Return an exception's type and words, also if it cannot say them."""
    return traceback.format_exception_only(type(error), error)[-1].strip()


def _unlike(original: Any, seam: Seam, in_class: bool) -> str:  # noqa: FBT001
    """Say what is there instead of what the seam knows; "" if it is that."""
    is_property = isinstance(original, property)
    if is_property != (seam.kind == "property"):
        return f"it is {'a' if is_property else 'no'} property now"
    function = _function(original)
    if not callable(function):
        return "it cannot be called any more"
    if isinstance(function, type):
        return "it is a class now"
    if in_class and not _is_method(original, function, seam.kind):
        return "it is no method any more"
    lacking = _lacking(function, seam.expects)
    return f"it no longer takes {', '.join(lacking)}" if lacking else ""


def _is_method(original: Any, function: Any, kind: str) -> bool:
    """Return whether a call of an instance passes that on, as a function's does."""
    if kind == "descriptor":
        return original is function and hasattr(type(function), "__get__")
    return any(hasattr(each, "__code__") for each in _wrapped_in(function))


def _lacking(function: Any, expected: tuple[str, ...]) -> list[str]:
    """Return the expected parameters that a function does not take in their place."""
    if not expected:
        return []
    try:
        taken = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        # A compiled function need not say what it takes; anything else is strange.
        return [] if inspect.isbuiltin(function) else list(expected)
    return [
        name
        for position, name in enumerate(expected)
        if taken[position : position + 1] != [name]
    ]


def _function(original: Any) -> Any:
    """Return the function beneath a property, a class method or a static one."""
    if isinstance(original, property):
        return original.fget
    if isinstance(original, (staticmethod, classmethod)):
        return original.__func__
    return original


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
    """Bind each seam now if its module is imported, else when it is; never raises."""
    bindings = [Binding(seam) for seam in seams]
    for binding in bindings:
        if binding.seam.module in sys.modules:
            binding.bind(sys.modules[binding.seam.module])
        else:
            when_imported(binding.seam.module, _bind_if_waiting(binding))
    return bindings


def _bind_if_waiting(binding: Binding) -> Callable[[Any], None]:
    def bind(module: Any) -> None:
        if binding.state == "waiting":
            binding.bind(module)

    return bind


def when_imported(name: str, call: Callable[[Any], None]) -> None:
    """Call this with a module when that is imported; what it raises stays here."""
    hook = partial(attempt, f"watch the import of {name}", call)
    attempt(
        f"wait for the import of {name}", wrapt.register_post_import_hook, hook, name
    )
