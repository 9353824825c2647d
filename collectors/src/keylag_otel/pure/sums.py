"""What all requests add up to."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, Callable

from keylag_otel.pure.clock import Clock, add
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

    def __init__(self, bounds: Sequence[int], counts: int) -> None:
        self._bounds = bounds
        self._counts = counts
        self.recorded: Callable[[Clock, Key], Any] | None = None
        self.clear()

    def clear(self) -> None:
        """Start from nothing."""
        self._rows: dict[Key, Totals] = {}
        self._tallies: dict[int, int] = {}
        self._lock = Lock()

    def add(self, clock: Clock, status: int) -> None:
        """Add a finished request."""
        key = key_of(clock, status)
        with self._lock:
            totals = self._rows.get(key)
            if totals is None:
                totals = self._rows[key] = Totals(self._bounds, self._counts)
            totals.add(clock)
            add(clock.tallies, self._tallies)
        if self.recorded is not None:
            self.recorded(clock, key)

    def tally(self, number: int) -> None:
        """Add one to a tally."""
        with self._lock:
            add({number: 1}, self._tallies)

    def by_key(self) -> dict[Key, Totals]:
        """Return a copy of what there is now."""
        with self._lock:
            return {key: totals.copy() for key, totals in self._rows.items()}

    @property
    def tallies(self) -> dict[int, int]:
        """A copy of the tallies."""
        with self._lock:
            return dict(self._tallies)
