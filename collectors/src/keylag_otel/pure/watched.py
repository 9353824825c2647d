"""A watched call, and what its notes are told before and after it."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from keylag_otel.pure.clock import CELL_MASK, COUNT_LIMIT, Hooks, below, running

Call = Callable[..., Any]


def watch(  # noqa: C901, PLR0913, PLR0917 - one shape for all that is watched
    call: Call,
    keep: int = CELL_MASK,
    put: int = 0,
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
    failed: Callable[..., Any] | None = None,
) -> Call:
    """Return the watched twin of a call: it does what the call does.

    While it runs, the cell is ``running & keep | put``.  Each note is called with
    the clock: ``before(clock, args, kwargs)``, ``after(clock, args, result)`` or
    ``failed(clock, args, exception)``; what a note raises is counted, and nothing else.
    Without a request there is no clock, and nothing is done.
    """
    keep, put = keep & CELL_MASK, put & CELL_MASK

    def tell(note: Any, *read: Any) -> None:
        try:
            note(*read)
        except Exception:
            Hooks.heard(call)

    @wraps(call)
    def watched(*args: Any, **kwargs: Any) -> Any:
        clock = running()
        if clock is None:
            return call(*args, **kwargs)
        outside = clock.at
        inside = outside & keep | put
        if inside != outside:
            clock.turn(inside, call)
        try:
            if before is not None:
                tell(before, clock, args, kwargs)
            result = call(*args, **kwargs)
            if after is not None:
                tell(after, clock, args, result)
        except Exception as error:
            if failed is not None:
                tell(failed, clock, args, error)
            raise
        finally:
            if inside != outside:
                clock.turn(outside)
        return result

    return watched


def asked(
    call: Call, counted: int, after: Callable[..., Any], failed: Callable[..., Any], /
) -> Call:
    """Return the watched twin of a call that asks a layer of the cache.

    It is a method of what was given its layer, which is the clock's while it runs.
    It adds one to ``counts[counted]`` and turns the clock to no other cell; only
    events tell when it ran.  What it calls of its own kind is not watched.  The notes
    are those of `watch`.
    """
    counted = below(COUNT_LIMIT, counted)

    @wraps(call)
    def watched(*args: Any, **kwargs: Any) -> Any:
        clock = running()
        if clock is None or clock.layer is not None:
            return call(*args, **kwargs)
        layer = _layer_of(args)
        if layer is None:
            return call(*args, **kwargs)
        clock.layer = layer
        clock.count_one(counted)
        if clock.writes:
            clock.turn(clock.at, call)
        try:
            return inner(*args, **kwargs)
        finally:
            clock.layer = None
            if clock.writes:
                clock.turn(clock.at)

    inner = watch(call, after=after, failed=failed)
    return watched


def _layer_of(args: tuple[Any, ...]) -> Any:
    """Return the layer of what is asked; None if it has none."""
    try:
        return args[0]._keylag_layer  # noqa: SLF001
    except Exception:
        return None


def tell_faults(fault: Callable[[Any], Any]) -> None:
    """Call this with the call that a note failed on."""
    Hooks.fault = fault
