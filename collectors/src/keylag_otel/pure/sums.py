"""What all requests add up to."""

from __future__ import annotations

from collections.abc import Iterable
from threading import RLock
from typing import Any, Callable

from keylag_otel.pure.clock import Clock, add, clock_of
from keylag_otel.pure.totals import Totals

#: The method, route, status and authentication method of a request.
Key = tuple[str, "str | None", int, "str | None"]


def key_of(clock: Clock, status: int) -> Key:
    """Return what a request is told apart by."""
    return clock.method, clock.route, status, clock.auth_method


class Sums:
    """Requests added up by what they are told apart by, and all their tallies.

    ``recorded``, unless it is None, is called with each clock and its key.
    """

    recorded: Callable[[Clock, Key], Any] | None = None

    def __init__(self, bounds: Iterable[int], counts: int) -> None:
        self._first = Totals(bounds, counts)  # all rows begin as this
        self.recorded = None
        self.clear()

    def clear(self) -> None:
        """Start from nothing."""
        self._rows: dict[Key, Totals] = {}
        self._tallies: dict[int, int] = {}
        # What a finaliser does may be counted while a request is being added.
        self._lock = RLock()

    def add(self, clock: Clock, status: int, /) -> None:
        """Add a finished request."""
        key = key_of(clock_of(clock), status)
        with self._lock:
            totals = self._rows.get(key)
            if totals is None:
                totals = self._rows.setdefault(key, self._first.copy())
            totals.add(clock)
            add(clock.tallies, self._tallies)
        if self.recorded is not None:
            self.recorded(clock, key)

    def tally(self, number: int, /) -> None:
        """Add one to a tally."""
        with self._lock:
            add({number: 1}, self._tallies)

    def by_key(self) -> dict[Key, Totals]:
        """Return a copy of what there is now."""
        with self._lock:
            return {key: totals.copy() for key, totals in dict(self._rows).items()}

    @property
    def tallies(self) -> dict[int, int]:
        """A copy of the tallies that are not 0."""
        with self._lock:
            return {number: count for number, count in self._tallies.items() if count}
