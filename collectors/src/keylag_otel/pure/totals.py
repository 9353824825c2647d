"""What requests add up to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from copy import copy
from operator import index

from keylag_otel.pure.clock import (
    COUNT_LIMIT,
    SUM_LIMIT,
    Clock,
    Complete,
    attribute,
    below,
    clock_of,
    copy_of,
)


class Totals(Complete):
    """Requests added up; times are nanoseconds.

    ``counts`` are those of their clocks.  ``buckets`` are how many took no longer
    than each of the `bounds`, but longer than the one before it, and how many took
    longer than all of them.
    """

    __slots__ = ("_bounds", "_buckets", "_cells", "_counts", "_longest", "_shortest")

    buckets = copy_of("_buckets", list)
    counts = copy_of("_counts", list)
    longest = attribute("_longest")
    shortest = attribute("_shortest")

    def _fill(self, bounds: Iterable[int], counts: int) -> None:
        size, self._bounds = below(COUNT_LIMIT + 1, counts), _ascending(bounds)
        self._counts = [0] * size
        self._cells: dict[int, int] = {}
        self._buckets = [0] * (len(self._bounds) + 1)
        self._shortest = self._longest = 0

    def add(self, clock: Clock, /) -> None:
        """Add a request."""
        wall = clock_of(clock).wall_ns
        self._shortest = min(self._shortest, wall) if any(self._buckets) else wall
        self._longest = max(self._longest, wall)
        self._buckets[bisect_left(self._bounds, wall)] += 1
        for number, count in enumerate(clock.counts[: len(self._counts)]):
            self._counts[number] += count
        for cell, spent in clock.spent().items():
            self._cells[cell] = self._cells.get(cell, 0) + spent

    def copy(self) -> Totals:
        """Return what it is now."""
        copied = Totals(self._bounds, len(self._counts))
        for name in self.__slots__:
            setattr(copied, name, copy(getattr(self, name)))
        return copied

    def spent(self) -> dict[int, int]:
        """Return the nanoseconds of each cell that has any."""
        return dict(self._cells)

    @property
    def wall_ns(self) -> int:
        """How long they took."""
        return sum(self._cells.values())


def _ascending(given: Iterable[int]) -> tuple[int, ...]:
    """Return bounds; ValueError if they are too many or do not ascend."""
    bounds = tuple(given)
    if len(bounds) > COUNT_LIMIT:
        message = f"there are more than {COUNT_LIMIT} bounds"
        raise ValueError(message)
    bounds = tuple(map(index, bounds))
    if not all(-SUM_LIMIT <= bound < SUM_LIMIT for bound in bounds):
        message = "a bound is larger than 64 bits hold"
        raise OverflowError(message)
    if list(bounds) != sorted(bounds):
        message = "the bounds do not ascend"
        raise ValueError(message)
    return bounds
