"""The request timer: the self time of each cell of one request."""

from __future__ import annotations

import os
import time
from _thread import get_ident
from bisect import bisect_left
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from operator import attrgetter, index
from typing import TYPE_CHECKING, Any, Callable

from keylag_otel.model import CALL_BOUNDS, CELL_LIMIT, EVENT_LIMIT

if TYPE_CHECKING:
    from typing_extensions import Self

CELL_MASK = CELL_LIMIT - 1

#: The most counts of a timer, kinds of single calls, and bounds of a histogram.
COUNT_LIMIT = 16

#: Counter ids are below this.
COUNTER_LIMIT = 1 << 30

#: Signed 64-bit integers are below this.
INT64_LIMIT = 1 << 63

#: By kind of single calls: nanoseconds, then the number of calls in each bucket.
CallTimes = dict[int, list[int]]


class Callbacks:
    """What `set_time_source` and `set_fault_handler` have set."""

    now: Callable[[], int] = time.perf_counter_ns
    fault_handler: Callable[[Any], Any] = bool

    @classmethod
    def report_fault(cls, call: Any) -> None:
        """Pass the wrapped call whose hook failed to the handler; ignore its errors."""
        with suppress(Exception):
            cls.fault_handler(call)


def int_below(limit: int, given: Any) -> int:
    """Return an integer from 0 up to but excluding `limit`, else raise ValueError."""
    number = index(given)
    if not 0 <= number < limit:
        message = f"{number} is not between 0 and {limit - 1}"
        raise ValueError(message)
    return number


def checked_int64(total: int) -> int:
    """Return a sum that fits into 64 bits, else raise OverflowError."""
    if not -INT64_LIMIT <= total < INT64_LIMIT:
        message = "the sum exceeds 64 bits"
        raise OverflowError(message)
    return total


def _checked_bool(given: Any) -> bool:
    if not isinstance(given, bool):
        message = f"expected a bool, got {given!r}"
        raise TypeError(message)
    return given


def _masked_cell(given: Any) -> int:
    return index(given) & CELL_MASK


def checked_property(name: str, check: Callable[[Any], Any] | None = None) -> Any:
    """Return a property; it can be set if there is a `check` of the value."""

    def set_checked(self: Any, given: Any) -> None:
        setattr(self, name, check(given))  # type: ignore[misc]

    return property(attrgetter(name), None if check is None else set_checked)


def copied_property(name: str, kind: Callable[[Any], Any]) -> Any:
    """Return a property that copies, so that callers cannot change the original."""
    return property(lambda self: kind(getattr(self, name)))


def copied_calls(calls: CallTimes) -> CallTimes:
    """Return a copy of single calls by kind."""
    return {kind: list(times) for kind, times in calls.items()}


class FixedAttributes:
    """Sets all attributes on creation; a second ``__init__`` has no effect."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Create and initialize an object."""
        self = super().__new__(cls)
        self._initialize(*args, **kwargs)
        return self

    def _initialize(self, *args: Any, **kwargs: Any) -> None:
        """Set all attributes."""

    def __delattr__(self, name: str) -> None:
        message = f"cannot delete {name!r} of a {type(self).__name__}"
        raise AttributeError(message)


class RequestTimer(FixedAttributes):
    """Divides the wall time of one request into cells.

    Attributes:
        current_cell: The cell that time goes to; only the lowest eight bits count.
        last_tick: When time was last accumulated, in nanoseconds.
        started_at: When the timer was created, in nanoseconds.
        counts: Small integers by index, as `keylag_otel.request_timer.COUNTS`.
        counters: Sums by counter id, as `keylag_otel.counters`.
        calls: Single calls by kind, as `keylag_otel.model.CALL_KINDS`: a list of their
            nanoseconds and the number of calls in each bucket.
        environ: The WSGI environment of the request.
        method, route, auth_method: The attributes that requests are aggregated by.
        missed_region: The cache region that last computed a value, or None.
        cache_layer: The cache layer that is being called, or None.
        last_layer: That of the last look-up since the last memoized call, or None.
        records_events: Whether ``events`` are recorded, for a request that may be
            traced; `keylag_otel.traces.events` has their format.
        is_traced: Whether the request is traced, however fast it is.

    """

    __slots__ = (
        "_calls",
        "_cells",
        "_counters",
        "_counts",
        "_current_cell",
        "_events",
        "_is_traced",
        "_last_tick",
        "_records_events",
        "_started_at",
        "_thread",
        "auth_method",
        "cache_layer",
        "environ",
        "last_layer",
        "method",
        "missed_region",
        "route",
    )

    calls = copied_property("_calls", copied_calls)
    current_cell = checked_property("_current_cell", _masked_cell)
    started_at = checked_property("_started_at")
    counts = copied_property("_counts", list)
    events = copied_property("_events", list)
    is_traced = checked_property("_is_traced", _checked_bool)
    last_tick = checked_property("_last_tick")
    counters = copied_property("_counters", dict)
    records_events = checked_property("_records_events", _checked_bool)

    def _initialize(self, method: str, current_cell: int, counts: int) -> None:
        self._current_cell = _masked_cell(current_cell)
        self._counts = [0] * int_below(COUNT_LIMIT + 1, counts)
        self.method = method
        self._cells = [0] * CELL_LIMIT
        self._counters: dict[int, int] = {}
        self._calls: CallTimes = {}
        self._records_events = self._is_traced = False
        self._events: list[tuple[Any, ...]] = []
        self.environ: Any = None
        self.missed_region: Any = None
        self.cache_layer: Any = None
        self.last_layer: Any = None
        self.route: str | None = None
        self.auth_method: str | None = None
        self._thread = get_ident()
        self._last_tick = self._started_at = Callbacks.now()

    def switch(self, cell: int, call: Any = None, /) -> int:
        """Accumulate, then switch to a cell; return the previous cell.

        The event says that `call` is entered, or, without a call, that the innermost
        call is left.
        """
        cell &= CELL_MASK
        self.accumulate()
        before = self._current_cell
        self._current_cell = cell
        self._append_event((self._last_tick, cell, call))
        return before

    def accumulate(self) -> None:
        """Add the time since the last tick to the current cell."""
        moment = Callbacks.now()
        self._cells[self._current_cell] += moment - self._last_tick
        self._last_tick = moment

    def discard_elapsed(self) -> None:
        """Leave out the time since the last tick."""
        self._last_tick = Callbacks.now()

    def count(self, position: int, /) -> None:
        """Increment a count; raise IndexError if the timer has no such index."""
        if not 0 <= index(position) < len(self._counts):
            message = "count index out of range"
            raise IndexError(message)
        self._counts[position] += 1

    def count_if_present(self, position: int) -> None:
        """Increment a count if the timer has that index."""
        if position < len(self._counts):
            self._counts[position] += 1

    def increment(self, counter_id: int, amount: int = 1, /) -> None:
        """Add to a counter.

        Raises ValueError for an invalid id, OverflowError if the sum exceeds 64 bits.
        """
        checked = int_below(COUNTER_LIMIT, counter_id)
        add_counters({checked: checked_int64(index(amount))}, self._counters)
        self._append_event((None, counter_id))

    def record_call(self, kind: int, started_at: int) -> None:
        """Record a single call that started then and ended at the last tick."""
        elapsed = self._last_tick - started_at
        times = self._calls.get(kind)
        if times is None:
            times = self._calls[kind] = [0] * (len(CALL_BOUNDS) + 2)
        times[0] += elapsed
        times[1 + bisect_left(CALL_BOUNDS, elapsed)] += 1

    def annotate(self, name: str, value: Any, /) -> None:
        """Record an attribute of the innermost call."""
        self._append_event((name, value))

    def _append_event(self, event: tuple[Any, ...]) -> None:
        if self._records_events and not self.event_limit_reached:
            self._events.append(event)

    @property
    def event_limit_reached(self) -> bool:
        """Whether further events are dropped."""
        return len(self._events) >= EVENT_LIMIT

    def self_times(self) -> dict[int, int]:
        """Return nanoseconds by cell, without zeros."""
        return {cell: elapsed for cell, elapsed in enumerate(self._cells) if elapsed}

    @property
    def wall_ns(self) -> int:
        """Accumulated nanoseconds of all cells."""
        return sum(self._cells)


def start_timer(
    methods: dict[str, str], other: str, current_cell: int, counts: int, environ: Any, /
) -> RequestTimer:
    """Return the timer of a request that starts now.

    `methods` maps known HTTP methods to their labels; `other` is the label of all
    others.  Raises TypeError unless `methods` is a dict.
    """
    if not isinstance(methods, dict):
        message = f"expected a dict of methods, got {methods!r}"
        raise TypeError(message)
    given = environ.get("REQUEST_METHOD", "") if isinstance(environ, dict) else ""
    timer = RequestTimer(methods.get(given, other), current_cell, counts)
    timer.environ = environ
    return timer


def checked_timer(given: Any) -> RequestTimer:
    """Return the argument if it is a RequestTimer, else raise TypeError."""
    if not isinstance(given, RequestTimer):
        message = f"expected a RequestTimer, got {given!r}"
        raise TypeError(message)
    return given


def add_counters(more: dict[int, int], sums: dict[int, int]) -> None:
    """Add counters to sums, both by counter id."""
    for number, count in more.items():
        sums[number] = checked_int64(
            sums.get(int_below(COUNTER_LIMIT, number), 0) + count
        )


def add_calls(more: CallTimes, sums: CallTimes) -> None:
    """Add single calls to sums, both by kind."""
    for kind, times in more.items():
        before = sums.get(kind) or [0] * len(times)
        sums[kind] = [one + other for one, other in zip(before, times)]


#: The timer of the request that this thread or greenlet works on.  A thread may
#: inherit the timer of the thread that started it; `current_timer` excludes that.
timer_var: ContextVar[RequestTimer | None] = ContextVar(
    "keylag_request_timer", default=None
)


def current_timer() -> RequestTimer | None:
    """Return the timer of the request that this very thread works on, or None."""
    timer = timer_var.get()
    if type(timer) is RequestTimer and timer._thread == get_ident():  # noqa: SLF001
        return timer
    return None


def activate(timer: RequestTimer) -> None:
    """Make a timer the current one of this thread."""
    checked_timer(timer)._thread = get_ident()  # noqa: SLF001
    timer_var.set(timer)


def deactivate(timer: RequestTimer) -> None:
    """Unset the current timer of this thread and of those that inherited it."""
    checked_timer(timer)._thread = 0  # noqa: SLF001
    timer_var.set(None)


def set_time_source(now: Callable[[], int] | None) -> None:
    """Read the time in nanoseconds from `now`, or from the system clock if None.

    The time is 0 where `now` fails.
    """
    Callbacks.now = (
        time.perf_counter_ns if now is None else partial(_read_time_source, now)
    )


def _read_time_source(now: Callable[[], int]) -> int:
    with suppress(Exception):
        moment = index(now())
        if -INT64_LIMIT <= moment < INT64_LIMIT:
            return moment
    return 0


def process_generation() -> int:
    """Return a number that differs between a process and its forked children."""
    return os.getpid()
