"""A seam: a place in a host where a wrapper replaces a callable.

The tables in `keylag_otel.seams` say which callables; the factories in
`keylag_otel.wrappers` make the wrappers.  A seam is bound when the host imports its
module, so that instrumenting imports nothing.
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
from keylag_otel.wrappers import WrapperFactory

LOG = logging.getLogger("keylag_otel")


@dataclass(frozen=True)
class Seam:
    """``module:path``, and the wrapper factories to apply, innermost first.

    ``optional`` seams exist only in some releases.  ``expects`` names the first
    parameters, for hooks that read arguments by position.  ``kind`` is "function",
    "property" or "descriptor" (a callable descriptor).  A callable with other
    parameters or of another kind is not bound.
    """

    module: str
    path: str
    factories: tuple[WrapperFactory, ...]
    optional: bool = False
    expects: tuple[str, ...] = ()
    kind: str = "function"


@dataclass
class Binding:
    """A seam in this process, with the original callable.

    Its state is ``waiting`` until its module is imported, then ``bound``,
    ``missing``, ``changed`` or, if binding raised, ``failed``; at last ``unbound``.
    ``reason`` says why it is not bound.
    """

    seam: Seam
    state: str = "waiting"
    reason: str = ""
    _owner: Any = None
    _original: Any = None
    _wrapper: Any = field(default=None, repr=False)

    def bind(self, module: Any) -> None:
        """Replace the callable by its wrapper, or log why not.

        Never raises, because it runs while the host imports its modules.
        """
        if self.state == "bound":
            return
        try:
            self._bind(module)
        except Exception as error:
            self._skip("failed", f"binding raised {_format_exception(error)}")

    def _bind(self, module: Any) -> None:
        *owners, name = self.seam.path.split(".")
        try:
            owner = module
            for part in owners:
                owner = getattr(owner, part)
            original = vars(owner)[name]
        except (AttributeError, KeyError):
            level = logging.DEBUG if self.seam.optional else logging.WARNING
            self._skip("missing", "this release does not have it", level)
            return
        unlike = _mismatch(original, self.seam, isinstance(owner, type))
        if unlike:
            self._skip("changed", unlike)
            return
        if not self._reuse_covered(owner, original):
            wrapper = _wrap(original, self.seam.factories)
            setattr(owner, name, wrapper)
            self._owner, self._original, self._wrapper = owner, original, wrapper
        self.state, self.reason = "bound", ""

    def _reuse_covered(self, owner: Any, present: Any) -> bool:
        """Reuse a wrapper that is still in use beneath that of another tool."""
        for wrapper in map(id, _wrapper_chain(present)):
            covered = _COVERED.get(wrapper)
            if covered is not None and covered.seam == self.seam:
                del _COVERED[wrapper]
                self._owner, self._original = owner, covered._original  # noqa: SLF001
                self._wrapper = covered._wrapper  # noqa: SLF001
                return True
        return False

    def _skip(self, state: str, reason: str, level: int = logging.WARNING) -> None:
        self.state, self.reason = state, reason
        LOG.log(
            level,
            "keylag does not measure %s:%s: %s; its time counts for its callers",
            *(self.seam.module, self.seam.path, reason),
        )

    def unbind(self) -> None:
        """Restore the original, unless another tool has wrapped the wrapper since.

        Then the wrapper stays in use; it measures nothing outside of timed requests.
        """
        if self.state == "bound":
            attempt(f"unbind {self.seam.path}", self._restore)
        self.state = "unbound"

    def _restore(self) -> None:
        name = self.seam.path.rpartition(".")[2]
        if vars(self._owner).get(name) is self._wrapper:
            setattr(self._owner, name, _original_beneath(self._original))
        else:
            _COVERED[id(self._wrapper)] = self


#: Unbound bindings whose wrapper is still in use, by the id of the wrapper.
_COVERED: dict[int, Binding] = {}


def _original_beneath(original: Any) -> Any:
    """Return the original beneath the wrappers of unbound seams."""
    while id(original) in _COVERED:
        original = _COVERED.pop(id(original))._original  # noqa: SLF001
    return original


def _wrapper_chain(call: Any) -> Iterator[Any]:
    """Yield a callable and all that its ``__wrapped__`` leads to."""
    for _ in range(100):  # a wrapper of another tool may refer to itself
        if call is None:
            return
        yield call
        call = getattr(call, "__wrapped__", None)


def _format_exception(error: BaseException) -> str:
    # Works also if the exception's __str__ raises.
    return traceback.format_exception_only(type(error), error)[-1].strip()


def _mismatch(original: Any, seam: Seam, in_class: bool) -> str:  # noqa: FBT001
    """Return how the callable differs from what the seam expects, or ""."""
    is_property = isinstance(original, property)
    if is_property != (seam.kind == "property"):
        return f"it is {'now' if is_property else 'no longer'} a property"
    function = _underlying_function(original)
    if not callable(function):
        return "it is no longer callable"
    if isinstance(function, type):
        return "it is now a class"
    if in_class and not _is_method(original, function, seam.kind):
        return "it is no longer a method"
    lacking = _missing_parameters(function, seam.expects)
    return f"it no longer takes {', '.join(lacking)}" if lacking else ""


def _is_method(original: Any, function: Any, kind: str) -> bool:
    """Return whether a call on an instance passes the instance, as a function does."""
    if kind == "descriptor":
        return original is function and hasattr(type(function), "__get__")
    return any(hasattr(each, "__code__") for each in _wrapper_chain(function))


def _missing_parameters(function: Any, expected: tuple[str, ...]) -> list[str]:
    """Return the expected parameters that the function lacks at their position."""
    if not expected:
        return []
    try:
        taken = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        # Compiled functions may have no signature.
        return [] if inspect.isbuiltin(function) else list(expected)
    return [
        name
        for position, name in enumerate(expected)
        if taken[position : position + 1] != [name]
    ]


def _underlying_function(original: Any) -> Any:
    if isinstance(original, property):
        return original.fget
    if isinstance(original, (staticmethod, classmethod)):
        return original.__func__
    return original


def _wrap(original: Any, factories: Iterable[WrapperFactory]) -> Any:
    """Apply the factories to a function, or to the getter of a property."""
    if isinstance(original, property) and original.fget is not None:
        return original.getter(_wrap(original.fget, factories))
    if isinstance(original, (staticmethod, classmethod)):
        return type(original)(_wrap(original.__func__, factories))
    for factory in factories:
        original = factory(original)
    return original


def bind_all(seams: Iterable[Seam]) -> list[Binding]:
    """Bind each seam now, or when its module is imported; never raises."""
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
    """Call `call(module)` when a module is imported; log what it raises."""
    hook = partial(attempt, f"handle the import of {name}", call)
    attempt(
        f"register for the import of {name}",
        wrapt.register_post_import_hook,
        hook,
        name,
    )
