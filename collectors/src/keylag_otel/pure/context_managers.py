"""Wrappers of calls that return context managers."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from keylag_otel.pure.request_timer import (
    CELL_MASK,
    Callbacks,
    RequestTimer,
    current_timer,
)

Call = Callable[..., Any]


def wrap_context_manager(
    call: Call, mask: int, bits: int, on_exit: Callable[..., Any] | None = None
) -> Call:
    """Return a wrapper of a call that returns a context manager; time its body.

    From before ``__enter__`` until after ``__exit__``, the current cell is
    ``cell & mask | bits``.  The hook ``on_exit(timer, args, {})`` then gets the
    positional arguments of the call.
    """
    mask, bits = mask & CELL_MASK, bits & CELL_MASK

    @wraps(call)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        context = call(*args, **kwargs)
        if current_timer() is None:
            return context
        return _TimedContext(call, context, mask, bits, on_exit, args)

    return wrapper


class _TimedContext:
    """Switches the cell while the body of another context manager runs."""

    __slots__ = (
        "_args",
        "_bits",
        "_call",
        "_context",
        "_mask",
        "_on_exit",
        "_outer_cell",
        "_timer",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - all that the wrapper has
        self,
        call: Call,
        context: Any,
        mask: int,
        bits: int,
        on_exit: Callable[..., Any] | None,
        args: tuple[Any, ...],
    ) -> None:
        self._call, self._args = call, args
        self._context = context
        self._mask, self._bits = mask, bits
        self._on_exit = on_exit
        self._timer: RequestTimer | None = None
        self._outer_cell = 0

    def __enter__(self) -> Any:
        timer = current_timer()
        if timer is None:
            return self._context.__enter__()
        self._outer_cell = timer.switch(
            timer.current_cell & self._mask | self._bits, self._call
        )
        try:
            value = self._context.__enter__()
        except BaseException:
            timer.switch(self._outer_cell)
            raise
        self._timer = timer
        return value

    def __exit__(self, kind: object, error: object, traceback: object, /) -> Any:
        timer, self._timer = self._timer, None
        try:
            return self._context.__exit__(kind, error, traceback)
        finally:
            # An abandoned body may exit after the end of its request.
            if timer is not None and timer is current_timer():
                timer.switch(self._outer_cell)
                self._call_on_exit(timer)

    def _call_on_exit(self, timer: RequestTimer) -> None:
        try:
            if self._on_exit is not None:
                self._on_exit(timer, self._args, {})
        except Exception:
            Callbacks.report_fault(self._call)
