"""The stopwatch of a request."""

from __future__ import annotations

import os
import time
from contextvars import ContextVar
from typing import Any, Callable

from keylag_otel.model import CELL_LIMIT, EVENT_LIMIT


class Hooks:
    """What `read_with` and `tell_faults` were given."""

    now: Callable[[], int] = time.perf_counter_ns
    fault: Callable[[Any], Any] = bool


class Clock:
    """Self times of one request.

    ``at`` is the running cell; ``mark`` is when it was last booked, ``began`` when
    the clock was started.  ``counts`` and ``tallies``, a number each, are what is
    counted beside time.  ``environ`` is what the server said of the request.
    ``missed`` is the cache region that last had to compute a value, ``layer`` the
    layer of the cache that is being asked.  ``writes`` says whether ``events``, which
    `keylag_otel.traces.events` explains, are written down, since the request may
    be traced; ``kept`` whether it is traced, however long it takes.
    """

    __slots__ = (
        "_cells",
        "at",
        "auth_method",
        "began",
        "counts",
        "environ",
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
        self.environ: dict[str, Any] = {}
        self.missed: Any = None
        self.layer: Any = None
        self.writes = self.kept = False
        self.events: list[tuple[Any, ...]] = []
        self.route: str | None = None
        self.auth_method: str | None = None
        self.at = at
        self.mark = self.began = Hooks.now()

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
        moment = Hooks.now()
        self._cells[self.at] += moment - self.mark
        self.mark = moment

    def count(self, index: int) -> None:
        """Add one to what is counted."""
        self.counts[index] += 1

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

    @property
    def wall_ns(self) -> int:
        """Nanoseconds booked so far."""
        return sum(self._cells)


def begun(
    methods: dict[str, str], other: str, at: int, counts: int, environ: dict[str, Any]
) -> Clock:
    """Return the clock of a request that starts now.

    `methods` has by name what the methods that are known are called, `other` is
    what all else is.
    """
    method = methods.get(environ.get("REQUEST_METHOD", ""), other)
    clock = Clock(method, at, counts)
    clock.environ = environ
    return clock


def add(more: dict[int, int], sums: dict[int, int]) -> None:
    """Add what is known under each number."""
    for number, count in more.items():
        sums[number] = sums.get(number, 0) + count


#: The clock of the request that this thread or greenlet is working on.  A new
#: thread starts without one, so that its time is not booked twice.
active: ContextVar[Clock | None] = ContextVar("keylag_clock", default=None)


def read_with(now: Callable[[], int] | None) -> None:
    """Read the time, in nanoseconds, by this; or by the clock again."""
    Hooks.now = now or time.perf_counter_ns


def process_number() -> int:
    """Return a number that a process has from its start, and a forked one has not."""
    return os.getpid()
