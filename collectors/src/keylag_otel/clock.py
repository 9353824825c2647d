"""The stopwatch of one request.

There is no stack of spans: at any moment exactly one cell is running, and the
Python stack itself remembers which cell to go back to.  Each switch reads the
clock once and books the time since the last switch, so the cells add up to
the wall time by construction, whatever is raised or abandoned in between.

Seams repeat the three lines of a switch instead of calling a method: they run
a hundred times in a request that takes four milliseconds.
"""

from __future__ import annotations

from collections import defaultdict
from contextvars import ContextVar
from time import perf_counter_ns as now
from typing import Any

from keylag_otel.model import cell_of

#: What is counted beside time; an index into ``Clock.counts``.
COUNTS = ("sql_statements", "cache_calls")


#: Until Keystone's own code is reached, a request is the web framework's.
START = cell_of("wsgi", "other")


class Clock:
    """Self times of one request.

    ``cells`` maps a cell to nanoseconds; ``at`` is the running cell; ``mark``
    is when it was last booked.  ``counts`` is parallel to ``COUNTS``;
    ``tallies`` maps the number of a tally to what was counted.  ``missed`` is
    the cache region that last had to compute a value, ``layer`` the layer of the
    cache that is being asked.
    """

    __slots__ = (
        "at",
        "auth_method",
        "cells",
        "counts",
        "layer",
        "mark",
        "method",
        "missed",
        "route",
        "tallies",
    )

    def __init__(self, method: str = "") -> None:
        self.method = method
        self.cells: defaultdict[int, int] = defaultdict(int)
        self.counts = [0] * len(COUNTS)
        self.tallies: defaultdict[int, int] = defaultdict(int)
        self.missed: Any = None
        self.layer: Any = None
        self.route: str | None = None
        self.auth_method: str | None = None
        self.at = START
        self.mark = now()

    def book(self) -> None:
        """Book the time since the last switch to the running cell."""
        moment = now()
        self.cells[self.at] += moment - self.mark
        self.mark = moment

    def resume(self) -> None:
        """Leave out the time since the last switch, as spent elsewhere."""
        self.mark = now()

    @property
    def wall_ns(self) -> int:
        """Nanoseconds booked so far."""
        return sum(self.cells.values())


#: The clock of the request that this thread or greenlet is working on.  A new
#: thread starts without one, so that its time is not booked twice.
active: ContextVar[Clock | None] = ContextVar("keylag_clock", default=None)

#: ``active.get``, looked up once.
current = active.get
