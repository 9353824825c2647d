"""What runs a hundred times in a request, in Python.

``native/`` is the same in C, and is used instead where it could be compiled,
since it costs less.  What is said here holds for both, and both pass the same
tests.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from functools import wraps
from typing import Any, Callable

from keylag_otel.model import CELL_LIMIT, EVENT_LIMIT

Call = Callable[..., Any]


class _Hooks:
    """What `read_with` and `tell_faults` were given."""

    now: Callable[[], int] = time.perf_counter_ns
    fault: Callable[[Any], Any] = bool


class Clock:
    """Self times of one request.

    ``at`` is the running cell; ``mark`` is when it was last booked.  ``counts``
    and ``tallies``, a number each, are what is counted beside time.  ``missed`` is the
    cache region that last had to compute a value, ``layer`` the layer of the
    cache that is being asked.  ``writes`` says whether ``events``, which
    `keylag_otel.traces.events` explains, are written down, since the request may
    be traced; ``kept`` whether it is traced, however long it takes.
    """

    __slots__ = (
        "_cells",
        "at",
        "auth_method",
        "counts",
        "events",
        "kept",
        "layer",
        "mark",
        "method",
        "missed",
        "route",
        "tallies",
        "writes",
    )

    def __init__(self, method: str, at: int, counts: int) -> None:
        self.method = method
        self._cells = [0] * CELL_LIMIT
        self.counts = [0] * counts
        self.tallies: dict[int, int] = {}
        self.missed: Any = None
        self.layer: Any = None
        self.writes = self.kept = False
        self.events: list[tuple[Any, ...]] = []
        self.route: str | None = None
        self.auth_method: str | None = None
        self.at = at
        self.mark = _Hooks.now()

    def turn(self, cell: int, call: Any = None) -> int:
        """Book the time since the last turn, and let `cell` run; return what ran.

        With a `call` that is entered, without one the innermost is left.
        """
        self.book()
        before = self.at
        self.at = cell
        self._write((self.mark, cell, call))
        return before

    def book(self) -> None:
        """Book the time since the last turn to the running cell."""
        moment = _Hooks.now()
        self._cells[self.at] += moment - self.mark
        self.mark = moment

    def resume(self) -> None:
        """Leave out the time since the last turn, as spent elsewhere."""
        self.mark = _Hooks.now()

    def tally(self, number: int, count: int = 1) -> None:
        """Add to a tally."""
        self.tallies[number] = self.tallies.get(number, 0) + count
        self._write((None, number))

    def note(self, name: str, value: Any) -> None:
        """Write down what is known of the innermost call."""
        self._write((name, value))

    def _write(self, event: tuple[Any, ...]) -> None:
        if self.writes and not self.is_full:
            self.events.append(event)

    @property
    def is_full(self) -> bool:
        """Whether no more events are written down."""
        return len(self.events) >= EVENT_LIMIT

    def spent(self) -> dict[int, int]:
        """Return the nanoseconds of each cell that has any."""
        return {cell: spent for cell, spent in enumerate(self._cells) if spent}

    def add_spent_to(self, sums: dict[int, int]) -> None:
        """Add the nanoseconds of each cell to what is known of it."""
        _add(self.spent(), sums)

    def add_tallies_to(self, sums: dict[int, int]) -> None:
        """Add each tally to what is known of it."""
        _add(self.tallies, sums)

    @property
    def wall_ns(self) -> int:
        """Nanoseconds booked so far."""
        return sum(self._cells)


def _add(more: dict[int, int], sums: dict[int, int]) -> None:
    for number, count in more.items():
        sums[number] = sums.get(number, 0) + count


#: The clock of the request that this thread or greenlet is working on.  A new
#: thread starts without one, so that its time is not booked twice.
active: ContextVar[Clock | None] = ContextVar("keylag_clock", default=None)


def watch(  # noqa: C901, PLR0913, PLR0917 - one shape for all that is watched
    call: Call,
    keep: int = CELL_LIMIT - 1,
    put: int = 0,
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
    failed: Callable[..., Any] | None = None,
) -> Call:
    """Return the watched twin of a call: it does what the call does.

    While it runs, the cell is ``running & keep | put``.  Each note is called with
    the clock: ``before(clock, args, kwargs)``, ``after(clock, args, result)`` or
    ``failed(clock, exception)``; what a note raises is counted, and nothing else.
    Without a request there is no clock, and nothing is done.
    """

    def tell(note: Any, *read: Any) -> None:
        try:
            note(*read)
        except Exception:
            _Hooks.fault(call)

    @wraps(call)
    def watched(*args: Any, **kwargs: Any) -> Any:
        clock = active.get()
        if clock is None:
            return call(*args, **kwargs)
        outside = clock.at
        inside = outside & keep | put
        if inside != outside:
            clock.turn(inside, call)
        if before is not None:
            tell(before, clock, args, kwargs)
        try:
            result = call(*args, **kwargs)
            if after is not None:
                tell(after, clock, args, result)
        except Exception as error:
            if failed is not None:
                tell(failed, clock, error)
            raise
        finally:
            if inside != outside:
                clock.turn(outside)
        return result

    return watched


def asked(
    call: Call, counted: int, after: Callable[..., Any], failed: Callable[..., Any]
) -> Call:
    """Return the watched twin of a call that asks a layer of the cache.

    It is a method of what was given its layer, which is the clock's while it runs.
    It adds one to ``counts[counted]`` and turns the clock to no other cell; only
    events tell when it ran.  What it calls of its own kind is not watched.  The notes
    are those of `watch`.
    """

    @wraps(call)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        clock = active.get()
        layer = getattr(self, "_keylag_layer", None)
        if clock is None or layer is None or clock.layer is not None:
            return call(self, *args, **kwargs)
        clock.layer = layer
        clock.counts[counted] += 1
        if clock.writes:
            clock.turn(clock.at, call)
        try:
            return inner(self, *args, **kwargs)
        finally:
            clock.layer = None
            if clock.writes:
                clock.turn(clock.at)

    inner = watch(call, after=after, failed=failed)
    return watched


def looked_up(no_value: Any) -> Callable[..., None]:
    """Return a note that counts a hit or, if it found `no_value`, a miss.

    It is for a method of what was given its layer.
    """

    def note(clock: Clock, args: tuple[Any, ...], value: Any) -> None:
        layer = args[0]._keylag_layer  # noqa: SLF001
        clock.tally(layer.miss if value is no_value else layer.hit)

    return note


def got(no_value: Any) -> Callable[..., None]:
    """Return a note that counts what the layer that is asked has found.

    Several values in a list are several look-ups; of serialised ones, the bytes
    are counted.
    """

    def note(clock: Clock, args: tuple[Any, ...], value: Any) -> None:
        if isinstance(value, list):
            for one in value:
                note(clock, args, one)
        elif value is None or value is no_value:
            clock.tally(clock.layer.miss)
        else:
            clock.tally(clock.layer.hit)
            if type(value) is bytes:
                clock.tally(clock.layer.received, len(value))

    return note


def received(index: int) -> Callable[..., None]:
    """Return a note that counts bytes which the layer that is asked receives.

    They are an argument of the call, or how many they are is.
    """

    def note(clock: Clock, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        del kwargs
        if clock.layer is not None and index < len(args):
            value = args[index]
            count = value if isinstance(value, int) else len(value)
            clock.tally(clock.layer.received, count)

    return note


def memoized(
    region: Any, numbers: Callable[[], tuple[int, int]]
) -> Callable[..., None]:
    """Return a note that counts a hit, or a miss if `region` computed a value.

    `numbers` is asked once, when there is something to count, for the tallies
    of a hit and of a miss.  As the note of a failed call it only forgets.
    """
    known: list[int] = []

    def note(clock: Clock, *came_out: Any) -> None:
        missed = clock.missed is region
        clock.missed = None
        if len(came_out) == 1:
            return
        if not known:
            known.extend(numbers())
        clock.tally(known[missed])

    return note


def read_with(now: Callable[[], int] | None) -> None:
    """Read the time, in nanoseconds, by this; or by the clock again."""
    _Hooks.now = now or time.perf_counter_ns


def tell_faults(fault: Callable[[Any], Any]) -> None:
    """Call this with the call that a note failed on."""
    _Hooks.fault = fault
