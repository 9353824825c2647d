"""The aggregate: sums over requests."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from copy import copy
from operator import index

from keylag_otel.pure.request_timer import (
    COUNT_LIMIT,
    INT64_LIMIT,
    FixedAttributes,
    RequestTimer,
    checked_property,
    checked_timer,
    copied_property,
    int_below,
)


class Aggregate(FixedAttributes):
    """Sums over the requests with one combination of attributes.

    Times are nanoseconds.  ``counts`` are the summed counts of the timers.
    ``buckets[i]`` is the number of requests with ``bounds[i-1] < wall time <=
    bounds[i]``; the last bucket has those above all `bounds`, which must ascend.
    """

    __slots__ = ("_bounds", "_buckets", "_cells", "_counts", "_max_ns", "_min_ns")

    buckets = copied_property("_buckets", list)
    counts = copied_property("_counts", list)
    max_ns = checked_property("_max_ns")
    min_ns = checked_property("_min_ns")

    def _initialize(self, bounds: Iterable[int], counts: int) -> None:
        size, self._bounds = int_below(COUNT_LIMIT + 1, counts), _ascending(bounds)
        self._counts = [0] * size
        self._cells: dict[int, int] = {}
        self._buckets = [0] * (len(self._bounds) + 1)
        self._min_ns = self._max_ns = 0

    def add(self, timer: RequestTimer, /) -> None:
        """Add a finished request; raise TypeError unless it is a RequestTimer."""
        wall = checked_timer(timer).wall_ns
        self._min_ns = min(self._min_ns, wall) if any(self._buckets) else wall
        self._max_ns = max(self._max_ns, wall)
        self._buckets[bisect_left(self._bounds, wall)] += 1
        for number, count in enumerate(timer.counts[: len(self._counts)]):
            self._counts[number] += count
        for cell, elapsed in timer.self_times().items():
            self._cells[cell] = self._cells.get(cell, 0) + elapsed

    def copy(self) -> Aggregate:
        """Return a copy."""
        copied = Aggregate(self._bounds, len(self._counts))
        for name in self.__slots__:
            setattr(copied, name, copy(getattr(self, name)))
        return copied

    def self_times(self) -> dict[int, int]:
        """Return nanoseconds by cell."""
        return dict(self._cells)

    @property
    def wall_ns(self) -> int:
        """Nanoseconds of all requests."""
        return sum(self._cells.values())


def _ascending(given: Iterable[int]) -> tuple[int, ...]:
    bounds = tuple(given)
    if len(bounds) > COUNT_LIMIT:
        message = f"more than {COUNT_LIMIT} bounds"
        raise ValueError(message)
    bounds = tuple(map(index, bounds))
    if not all(-INT64_LIMIT <= bound < INT64_LIMIT for bound in bounds):
        message = "a bound exceeds 64 bits"
        raise OverflowError(message)
    if list(bounds) != sorted(bounds):
        message = "bounds must ascend"
        raise ValueError(message)
    return bounds
