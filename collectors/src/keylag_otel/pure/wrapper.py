"""Wrappers of host functions, and the hooks that they run."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from keylag_otel.pure.request_timer import (
    CELL_MASK,
    COUNT_LIMIT,
    Callbacks,
    current_timer,
    int_below,
)

Call = Callable[..., Any]


def wrap(  # noqa: C901, PLR0913, PLR0917 - one wrapper for all cases
    call: Call,
    mask: int = CELL_MASK,
    bits: int = 0,
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
    on_error: Callable[..., Any] | None = None,
    kinds: tuple[int, int] | None = None,
) -> Call:
    """Return a wrapper that calls the original and measures it.

    While the call runs, the current cell is ``cell & mask | bits``.  The hooks are
    ``before(timer, args, kwargs)``, ``after(timer, args, result)`` and
    ``on_error(timer, args, exception)``.  An Exception of a hook goes to the fault
    handler and is suppressed.  Outside of a request the wrapper only calls.

    With `kinds`, a call that changes the cell is recorded as a single call: of the
    second kind if its third argument is a statement that writes, else of the first.
    Raises ValueError for an invalid kind.
    """
    mask, bits = mask & CELL_MASK, bits & CELL_MASK
    kinds = None if kinds is None else _checked_pair(kinds)

    def run(hook: Any, *values: Any) -> None:
        try:
            hook(*values)
        except Exception:
            Callbacks.report_fault(call)

    @wraps(call)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        timer = current_timer()
        if timer is None:
            return call(*args, **kwargs)
        outer = timer.current_cell
        inside = outer & mask | bits
        if inside != outer:
            timer.switch(inside, call)
        started_at = timer.last_tick
        try:
            if before is not None:
                run(before, timer, args, kwargs)
            result = call(*args, **kwargs)
            if after is not None:
                run(after, timer, args, result)
        except Exception as error:
            if on_error is not None:
                run(on_error, timer, args, error)
            raise
        finally:
            if inside != outer:
                timer.switch(outer)
                if kinds is not None:
                    timer.record_call(kinds[_writes(args)], started_at)
        return result

    return wrapper


def _checked_pair(kinds: Any) -> tuple[int, int]:
    if not isinstance(kinds, tuple) or len(kinds) != len(("read", "write")):
        message = f"expected a tuple of two kinds, got {kinds!r}"
        raise TypeError(message)
    read, write = (int_below(COUNT_LIMIT, kind) for kind in kinds)
    return read, write


#: The first letters of INSERT, UPDATE and DELETE.
_WRITE_LETTERS = tuple("IUDiud")


def _writes(args: tuple[Any, ...]) -> bool:
    return (
        len(args) > 2  # noqa: PLR2004
        and isinstance(args[2], str)
        and str.startswith(args[2], _WRITE_LETTERS)
    )


def wrap_cache_call(
    call: Call,
    count_index: int,
    kind: int,
    after: Callable[..., Any],
    on_error: Callable[..., Any],
    /,
) -> Call:
    """Return a wrapper of a backend method, which sets the current cache layer.

    The method's object has a cache layer; without one the wrapper only calls.
    It increments ``counts[count_index]``, records a single call of this kind, and stays
    in the current cell; events record its start and end.  Nested backend calls count
    once.  The hooks are those of `wrap`.  Raises ValueError for an invalid index or
    kind.
    """
    count_index = int_below(COUNT_LIMIT, count_index)
    kind = int_below(COUNT_LIMIT, kind)

    @wraps(call)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        timer = current_timer()
        if timer is None or timer.cache_layer is not None:
            return call(*args, **kwargs)
        cache_layer = _layer_of(args)
        if cache_layer is None:
            return call(*args, **kwargs)
        timer.cache_layer = cache_layer
        timer.count_if_present(count_index)
        timer.switch(timer.current_cell, call)
        started_at = timer.last_tick
        try:
            return inner(*args, **kwargs)
        finally:
            timer.cache_layer = None
            timer.switch(timer.current_cell)
            timer.record_call(kind, started_at)

    inner = wrap(call, after=after, on_error=on_error)
    return wrapper


def _layer_of(args: tuple[Any, ...]) -> Any:
    try:
        return args[0]._keylag_layer  # noqa: SLF001
    except Exception:
        return None


def set_fault_handler(handler: Callable[[Any], Any]) -> None:
    """Call this with each wrapped call whose hook raised an Exception."""
    Callbacks.fault_handler = handler
