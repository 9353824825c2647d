"""How a seam is watched: each maker turns a callable into its watched twin.

A watched call passes arguments, result and exception through untouched.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import wraps
from time import perf_counter_ns as now
from typing import Any, Callable

from keylag_otel.clock import COUNTS, Clock, current
from keylag_otel.ledger import LEDGER
from keylag_otel.model import OPERATIONS, PHASE_BITS, PHASE_MASK, PHASES

Call = Callable[..., Any]
Maker = Callable[[Call], Call]
Note = Callable[[Clock, "tuple[Any, ...]", "dict[str, Any]"], None]
NoteResult = Callable[[Clock, "tuple[Any, ...]", Any], None]
NoteFailure = Callable[[Clock, Exception], None]

LOG = logging.getLogger("keylag_otel")


def timed(phase: str | None = None, operation: str | None = None) -> Maker:
    """Book a call's self time to a phase, an operation, or both.

    What is not given stays as it is: the innermost that says something wins.
    """
    keep = (0 if phase else PHASE_MASK) | (0 if operation else ~PHASE_MASK)
    put = PHASES.index(phase or "other") * bool(phase)
    put |= (OPERATIONS.index(operation or "other") * bool(operation)) << PHASE_BITS

    def maker(call: Call) -> Call:
        @wraps(call)
        def watched(*args: Any, **kwargs: Any) -> Any:
            clock = current()
            if clock is None:
                return call(*args, **kwargs)
            outside = clock.at
            inside = outside & keep | put
            if inside == outside:
                return call(*args, **kwargs)
            moment = now()
            clock.cells[outside] += moment - clock.mark
            clock.mark = moment
            clock.at = inside
            try:
                return call(*args, **kwargs)
            finally:
                moment = now()
                clock.cells[inside] += moment - clock.mark
                clock.mark = moment
                clock.at = outside

        return watched

    return maker


def counted(count: str) -> Maker:
    """Count the calls."""
    index = COUNTS.index(count)

    def maker(call: Call) -> Call:
        @wraps(call)
        def watched(*args: Any, **kwargs: Any) -> Any:
            clock = current()
            if clock is not None:
                clock.counts[index] += 1
            return call(*args, **kwargs)

        return watched

    return maker


def noted(note: Note) -> Maker:
    """Let `note` read the arguments before the call; its failure is ours alone."""

    def maker(call: Call) -> Call:
        @wraps(call)
        def watched(*args: Any, **kwargs: Any) -> Any:
            clock = current()
            if clock is not None:
                try:
                    note(clock, args, kwargs)
                except Exception:
                    fault(call)
            return call(*args, **kwargs)

        return watched

    return maker


def noted_result(note: NoteResult) -> Maker:
    """Let `note` read the arguments and the result after a call that returned."""

    def maker(call: Call) -> Call:
        @wraps(call)
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            clock = current()
            if clock is not None:
                try:
                    note(clock, args, result)
                except Exception:
                    fault(call)
            return result

        return watched

    return maker


def noted_failure(note: NoteFailure) -> Maker:
    """Let `note` see what a call raised; it is raised on as it was."""

    def maker(call: Call) -> Call:
        @wraps(call)
        def watched(*args: Any, **kwargs: Any) -> Any:
            try:
                return call(*args, **kwargs)
            except Exception as error:
                clock = current()
                if clock is not None:
                    try:
                        note(clock, error)
                    except Exception:
                        fault(call)
                raise

        return watched

    return maker


def fault(call: Any) -> None:
    """Count an exception of our own, raised while watching `call`."""
    LEDGER.fault(getattr(call, "__qualname__", "unknown"))
    LOG.debug("keylag failed while watching %r", call)


def timed_context(phase: str, left: Note | None = None) -> Maker:
    """Like `timed`, for the body of the context manager that a call returns.

    `left` reads the call's arguments when the body is left.
    """
    number = PHASES.index(phase)

    def maker(call: Call) -> Call:
        @wraps(call)
        def watched(*args: Any, **kwargs: Any) -> Any:
            context = _TimedContext(call(*args, **kwargs), number)
            if left is not None:
                context.left = lambda clock: left(clock, args, kwargs)
            return context

        return watched

    return maker


class _TimedContext:
    """Runs a phase while the body of another context manager runs."""

    __slots__ = ("_context", "_outside", "_phase", "left")

    def __init__(self, context: Any, phase: int) -> None:
        self._context = context
        self._phase = phase
        self._outside = -1
        self.left: Callable[[Clock], None] = _nothing

    def __enter__(self) -> Any:
        entered = self._context.__enter__()
        clock = current()
        if clock is not None:
            clock.book()
            self._outside = clock.at
            clock.at = clock.at & ~PHASE_MASK | self._phase
        return entered

    def __exit__(self, *exception: object) -> Any:
        clock = current()
        if clock is not None and self._outside >= 0:
            clock.book()
            clock.at = self._outside
            self.left(clock)
        return self._context.__exit__(*exception)


def _nothing(clock: Clock) -> None:
    """Do nothing when a body is left."""


def timed_iterator(phase: str, iterator: Iterator[Any]) -> Iterator[Any]:
    """Return an iterator whose every step is booked to `phase`."""
    return _TimedIterator(iterator, PHASES.index(phase))


class _TimedIterator:
    """An iterator that may be left half read: no step leaves a clock behind."""

    __slots__ = ("_iterator", "_phase")

    def __init__(self, iterator: Iterator[Any], phase: int) -> None:
        self._iterator = iterator
        self._phase = phase

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        clock = current()
        if clock is None:
            return next(self._iterator)
        outside = clock.at
        clock.book()
        clock.at = outside & ~PHASE_MASK | self._phase
        try:
            return next(self._iterator)
        finally:
            clock.book()
            clock.at = outside
