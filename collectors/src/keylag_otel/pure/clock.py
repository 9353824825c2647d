"""The stopwatch of a request."""

from __future__ import annotations

import os
import time
from _thread import get_ident
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from operator import attrgetter, index
from typing import TYPE_CHECKING, Any, Callable

from keylag_otel.model import CELL_LIMIT, EVENT_LIMIT

if TYPE_CHECKING:
    from typing_extensions import Self

CELL_MASK = CELL_LIMIT - 1

#: A clock has no more counts than that, and a histogram no more bounds.
COUNT_LIMIT = 16

#: The numbers of tallies are below this.
TALLY_LIMIT = 1 << 30

#: What 64 bits hold is below this.
SUM_LIMIT = 1 << 63


class Hooks:
    """What `read_with` and `tell_faults` were given."""

    now: Callable[[], int] = time.perf_counter_ns
    fault: Callable[[Any], Any] = bool

    @classmethod
    def heard(cls, call: Any) -> None:
        """Tell of what was raised while watching a call; who is told may fail too."""
        with suppress(Exception):
            cls.fault(call)


def below(limit: int, given: Any) -> int:
    """Return a number from 0 to below a limit; ValueError if it is not."""
    number = index(given)
    if not 0 <= number < limit:
        message = f"{number} is not from 0 to {limit - 1}"
        raise ValueError(message)
    return number


def in_64_bits(total: int) -> int:
    """Return a sum; OverflowError if 64 bits do not hold it."""
    if not -SUM_LIMIT <= total < SUM_LIMIT:
        message = "a sum is larger than 64 bits hold"
        raise OverflowError(message)
    return total


def _flag(given: Any) -> bool:
    if not isinstance(given, bool):
        message = f"{given!r} is neither True nor False"
        raise TypeError(message)
    return given


def _cell(given: Any) -> int:
    return index(given) & CELL_MASK


def attribute(name: str, check: Callable[[Any], Any] | None = None) -> Any:
    """Return a property that can be read and, after a check, be set."""

    def set_checked(self: Any, given: Any) -> None:
        setattr(self, name, check(given))  # type: ignore[misc]

    return property(attrgetter(name), None if check is None else set_checked)


def copy_of(name: str, kind: Callable[[Any], Any]) -> Any:
    """Return a property that is a copy, so that nobody can change what it is of."""
    return property(lambda self: kind(getattr(self, name)))


class Complete:
    """Has all its attributes from the start: to initialise it again does nothing."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Return one, filled."""
        self = super().__new__(cls)
        self._fill(*args, **kwargs)
        return self

    def _fill(self, *args: Any, **kwargs: Any) -> None:
        """Set all attributes."""

    def __delattr__(self, name: str) -> None:
        message = f"{name!r} of a {type(self).__name__} cannot be deleted"
        raise AttributeError(message)


class Clock(Complete):
    """Self times of one request.

    ``at`` is the running cell, of which the lowest eight bits count; ``mark`` is when
    it was last booked, ``began`` when the clock was started.  ``counts`` and
    ``tallies``, a number each, are what is counted beside time.  ``environ`` is what
    the server said of the request.  ``missed`` is the cache region that last had to
    compute a value, ``layer`` the layer of the cache that is being asked.  ``writes``
    says whether ``events``, which `keylag_otel.traces.events` explains, are written
    down, since the request may be traced; ``kept`` whether it is traced, however long
    it takes.  ``thread`` is the thread that works on the request.
    """

    __slots__ = (
        "_at",
        "_began",
        "_cells",
        "_counts",
        "_events",
        "_kept",
        "_mark",
        "_tallies",
        "_thread",
        "_writes",
        "auth_method",
        "environ",
        "layer",
        "method",
        "missed",
        "route",
    )

    at = attribute("_at", _cell)
    began = attribute("_began")
    counts = copy_of("_counts", list)
    events = copy_of("_events", list)
    kept = attribute("_kept", _flag)
    mark = attribute("_mark")
    tallies = copy_of("_tallies", dict)
    writes = attribute("_writes", _flag)

    def _fill(self, method: str, at: int, counts: int) -> None:
        self._at = _cell(at)
        self._counts = [0] * below(COUNT_LIMIT + 1, counts)
        self.method = method
        self._cells = [0] * CELL_LIMIT
        self._tallies: dict[int, int] = {}
        self._writes = self._kept = False
        self._events: list[tuple[Any, ...]] = []
        self.environ: Any = None
        self.missed: Any = None
        self.layer: Any = None
        self.route: str | None = None
        self.auth_method: str | None = None
        self._thread = get_ident()
        self._mark = self._began = Hooks.now()

    def turn(self, cell: int, call: Any = None, /) -> int:
        """Book the time since the last turn, and let `cell` run; return what ran.

        With a `call` that is entered, without one the innermost is left.
        """
        cell &= CELL_MASK
        self.book()
        before = self._at
        self._at = cell
        self._write((self._mark, cell, call))
        return before

    def book(self) -> None:
        """Book the time since the last turn to the running cell."""
        moment = Hooks.now()
        self._cells[self._at] += moment - self._mark
        self._mark = moment

    def skip(self) -> None:
        """Leave the time since the last turn out: it was spent elsewhere."""
        self._mark = Hooks.now()

    def count(self, number: int, /) -> None:
        """Add one to what is counted."""
        if not 0 <= index(number) < len(self._counts):
            message = "no such count"
            raise IndexError(message)
        self._counts[number] += 1

    def count_one(self, number: int) -> None:
        """Add one to a count, if this clock has it."""
        if number < len(self._counts):
            self._counts[number] += 1

    def tally(self, number: int, count: int = 1, /) -> None:
        """Add to a tally."""
        checked = below(TALLY_LIMIT, number)
        add({checked: in_64_bits(index(count))}, self._tallies)
        self._write((None, number))

    def note(self, name: str, value: Any, /) -> None:
        """Write down what is known of the innermost call."""
        self._write((name, value))

    def _write(self, event: tuple[Any, ...]) -> None:
        if self._writes and not self.is_full:
            self._events.append(event)

    @property
    def is_full(self) -> bool:
        """Whether no more events are written down."""
        return len(self._events) >= EVENT_LIMIT

    def spent(self) -> dict[int, int]:
        """Return the nanoseconds of each cell that has any."""
        return {cell: spent for cell, spent in enumerate(self._cells) if spent}

    @property
    def wall_ns(self) -> int:
        """Nanoseconds booked so far."""
        return sum(self._cells)


def begun(
    methods: dict[str, str], other: str, at: int, counts: int, environ: Any, /
) -> Clock:
    """Return the clock of a request that starts now.

    `methods` has by name what the methods that are known are called, `other` is
    what all else is.
    """
    if not isinstance(methods, dict):
        message = f"the methods are a dictionary, and not {methods!r}"
        raise TypeError(message)
    given = environ.get("REQUEST_METHOD", "") if isinstance(environ, dict) else ""
    clock = Clock(methods.get(given, other), at, counts)
    clock.environ = environ
    return clock


def clock_of(given: Any) -> Clock:
    """Return a clock; TypeError if it is none."""
    if not isinstance(given, Clock):
        message = f"this is not a clock: {given!r}"
        raise TypeError(message)
    return given


def add(more: dict[int, int], sums: dict[int, int]) -> None:
    """Add what is known under each number."""
    for number, count in more.items():
        sums[number] = in_64_bits(sums.get(below(TALLY_LIMIT, number), 0) + count)


#: The clock of the request that this thread or greenlet is working on.  A thread
#: may inherit the clock of the one that started it, which goes on working with it:
#: see `running`.
active: ContextVar[Clock | None] = ContextVar("keylag_clock", default=None)


def running() -> Clock | None:
    """Return the clock of the request that this very thread works on, or None."""
    clock = active.get()
    if type(clock) is Clock and clock._thread == get_ident():  # noqa: SLF001
        return clock
    return None


def activate(clock: Clock) -> None:
    """Let this thread work on a request from now on."""
    clock_of(clock)._thread = get_ident()  # noqa: SLF001
    active.set(clock)


def deactivate(clock: Clock) -> None:
    """Let no thread work on a request, whatever they have inherited."""
    clock_of(clock)._thread = 0  # noqa: SLF001
    active.set(None)


def read_with(now: Callable[[], int] | None) -> None:
    """Read the time, in nanoseconds, by this; or by the clock again.

    Where it fails, the time is 0.
    """
    Hooks.now = time.perf_counter_ns if now is None else partial(_read, now)


def _read(now: Callable[[], int]) -> int:
    with suppress(Exception):
        moment = index(now())
        if -SUM_LIMIT <= moment < SUM_LIMIT:
            return moment
    return 0


def process_number() -> int:
    """Return a number that a process has from its start, and a forked one has not."""
    return os.getpid()
