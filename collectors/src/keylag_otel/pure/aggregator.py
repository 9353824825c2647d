"""The aggregator: one aggregate for each combination of request attributes."""

from __future__ import annotations

from collections.abc import Iterable
from threading import RLock
from typing import Any, Callable

from keylag_otel.pure.aggregate import Aggregate
from keylag_otel.pure.request_timer import (
    CallTimes,
    RequestTimer,
    add_calls,
    add_counters,
    checked_timer,
    copied_calls,
)

#: The method, route, status and authentication method of a request.
RequestKey = tuple[str, "str | None", int, "str | None"]


def request_key(timer: RequestTimer, status: int) -> RequestKey:
    """Return the attributes that a request is aggregated by."""
    return timer.method, timer.route, status, timer.auth_method


class Aggregator:
    """Aggregates requests by key; sums their counters and single calls over all keys.

    `bounds` and `counts` are those of `Aggregate`.  ``on_request``, unless it is
    None, is called with the timer and key of each added request.
    """

    on_request: Callable[[RequestTimer, RequestKey], Any] | None = None

    def __init__(self, bounds: Iterable[int], counts: int) -> None:
        self._empty_aggregate = Aggregate(bounds, counts)  # copied for each new key
        self.on_request = None
        self.clear()

    def clear(self) -> None:
        """Remove all aggregates, counters and single calls."""
        self._aggregates: dict[RequestKey, Aggregate] = {}
        self._counters: dict[int, int] = {}
        self._calls: CallTimes = {}
        # Reentrant: a finalizer that runs while a request is added may count too.
        self._lock = RLock()

    def add(self, timer: RequestTimer, status: int, /) -> None:
        """Add a finished request; raise TypeError unless it is a RequestTimer."""
        key = request_key(checked_timer(timer), status)
        with self._lock:
            aggregate = self._aggregates.get(key)
            if aggregate is None:
                aggregate = self._aggregates.setdefault(
                    key, self._empty_aggregate.copy()
                )
            aggregate.add(timer)
            add_calls(timer.calls, self._calls)
            add_counters(timer.counters, self._counters)
        if self.on_request is not None:
            self.on_request(timer, key)

    def increment(self, counter_id: int, /) -> None:
        """Increment a counter; raise ValueError for an invalid id."""
        with self._lock:
            add_counters({counter_id: 1}, self._counters)

    def by_key(self) -> dict[RequestKey, Aggregate]:
        """Return copies of all aggregates by key."""
        with self._lock:
            return {
                key: aggregate.copy()
                for key, aggregate in dict(self._aggregates).items()
            }

    @property
    def calls(self) -> CallTimes:
        """Sums of ``RequestTimer.calls``."""
        with self._lock:
            return copied_calls(self._calls)

    @property
    def counters(self) -> dict[int, int]:
        """Sums by counter id, without zeros."""
        with self._lock:
            return {number: count for number, count in self._counters.items() if count}
