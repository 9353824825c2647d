"""The body of a context manager that a call returns."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from keylag_otel.pure.clock import CELL_MASK, Clock, Hooks, running

Call = Callable[..., Any]


def watch_body(
    call: Call, keep: int, put: int, left: Callable[..., Any] | None = None
) -> Call:
    """Return the twin of a call that returns a context manager; its body is watched.

    From before the context is entered until it is left, the cell is
    ``running & keep | put``.  ``left(clock, args, {})`` is then told the positional
    arguments of the call.
    """
    keep, put = keep & CELL_MASK, put & CELL_MASK

    @wraps(call)
    def watched(*args: Any, **kwargs: Any) -> Any:
        context = call(*args, **kwargs)
        if running() is None:
            return context
        return _Body(call, context, keep, put, left, args)

    return watched


class _Body:
    """Runs a cell from before another context manager is entered until it is left."""

    __slots__ = (
        "_args",
        "_call",
        "_clock",
        "_context",
        "_keep",
        "_left",
        "_outside",
        "_put",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - `watch_body` and what came of the call
        self,
        call: Call,
        context: Any,
        keep: int,
        put: int,
        left: Callable[..., Any] | None,
        args: tuple[Any, ...],
    ) -> None:
        self._call, self._args = call, args
        self._context = context
        self._keep, self._put = keep, put
        self._left = left
        self._clock: Clock | None = None
        self._outside = 0

    def __enter__(self) -> Any:
        clock = running()
        if clock is None:
            return self._context.__enter__()
        self._outside = clock.turn(clock.at & self._keep | self._put, self._call)
        try:
            entered = self._context.__enter__()
        except BaseException:
            clock.turn(self._outside)
            raise
        self._clock = clock
        return entered

    def __exit__(self, kind: object, error: object, traceback: object, /) -> Any:
        clock, self._clock = self._clock, None
        try:
            return self._context.__exit__(kind, error, traceback)
        finally:
            # A body that was abandoned may be left when its request is over.
            if clock is not None and clock is running():
                clock.turn(self._outside)
                self._tell_left(clock)

    def _tell_left(self, clock: Clock) -> None:
        try:
            if self._left is not None:
                self._left(clock, self._args, {})
        except Exception:
            Hooks.heard(self._call)
