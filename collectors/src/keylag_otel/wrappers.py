"""How a seam is watched: each maker turns a callable into its watched twin.

A watched call passes arguments, result and exception through untouched.
"""

from __future__ import annotations

import logging
from functools import partial, wraps
from typing import Any, Callable

from keylag_otel.clock import Clock, current, tell_faults, watch
from keylag_otel.ledger import LEDGER
from keylag_otel.model import OPERATIONS, PHASE_BITS, PHASE_MASK, PHASES

Call = Callable[..., Any]
Maker = Callable[[Call], Call]
Note = Callable[[Clock, "tuple[Any, ...]", "dict[str, Any]"], None]
NoteResult = Callable[[Clock, "tuple[Any, ...]", Any], None]
NoteFailure = Callable[[Clock, Exception], None]

LOG = logging.getLogger("keylag_otel")


def timed(
    phase: str | None = None, operation: str | None = None, **notes: Call
) -> Maker:
    """Book a call's self time to a phase, an operation, or both.

    What is not given stays as it is: the innermost that says something wins.
    `notes` are those of ``clock.watch``.
    """
    keep = (0 if phase else PHASE_MASK) | (0 if operation else ~PHASE_MASK)
    put = PHASES.index(phase or "other") * bool(phase)
    put |= (OPERATIONS.index(operation or "other") * bool(operation)) << PHASE_BITS
    return partial(watch, keep=keep, put=put, **notes)


def noted(note: Note) -> Maker:
    """Let `note` read the arguments before the call; its failure is ours alone."""
    return partial(watch, before=note)


def noted_result(note: NoteResult) -> Maker:
    """Let `note` read the arguments and the result after a call that returned."""
    return partial(watch, after=note)


def noted_failure(note: NoteFailure) -> Maker:
    """Let `note` see what a call raised; it is raised on as it was."""
    return partial(watch, failed=note)


def fault(call: Any) -> None:
    """Count an exception of our own, raised while watching `call`."""
    LEDGER.fault(getattr(call, "__qualname__", "unknown"))
    LOG.debug("keylag failed while watching %r", call)


tell_faults(fault)


def timed_context(phase: str, left: Note | None = None) -> Maker:
    """Like `timed`, for the body of the context manager that a call returns.

    `left` reads the call's arguments when the body is left.
    """
    number = PHASES.index(phase)

    def maker(call: Call) -> Call:
        @wraps(call)
        def watched(*args: Any, **kwargs: Any) -> Any:
            context = _TimedContext(call, call(*args, **kwargs), number)
            if left is not None:
                context.left = lambda clock: left(clock, args, kwargs)
            return context

        return watched

    return maker


class _TimedContext:
    """Runs a phase from before another context manager is entered until it is left."""

    __slots__ = ("_call", "_clock", "_context", "_outside", "_phase", "left")

    def __init__(self, call: Call, context: Any, phase: int) -> None:
        self._call = call
        self._context = context
        self._phase = phase
        self._clock: Clock | None = None
        self._outside = 0
        self.left: Callable[[Clock], None] = _nothing

    def __enter__(self) -> Any:
        clock = self._clock = current()
        if clock is None:
            return self._context.__enter__()
        self._outside = clock.turn(clock.at & ~PHASE_MASK | self._phase, self._call)
        try:
            return self._context.__enter__()
        except BaseException:
            clock.turn(self._outside)
            raise

    def __exit__(self, *exception: object) -> Any:
        try:
            return self._context.__exit__(*exception)
        finally:
            clock = current()
            # A body that was abandoned may be left when its request is over.
            if clock is not None and clock is self._clock:
                clock.turn(self._outside)
                self.left(clock)


def _nothing(clock: Clock) -> None:
    """Do nothing when a body is left."""
