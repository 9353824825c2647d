"""What requests add up to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from copy import deepcopy

from keylag_otel.pure.clock import Clock, add


class Totals:
    """Requests added up; times are nanoseconds.

    ``counts`` are those of their clocks.  ``buckets`` are how many took no longer
    than each of the `bounds`, but longer than the one before it, and how many took
    longer than all of them.
    """

    __slots__ = ("_bounds", "_cells", "buckets", "counts", "longest", "shortest")

    def __init__(self, bounds: Sequence[int], counts: int) -> None:
        self._bounds = bounds
        self._cells: dict[int, int] = {}
        self.counts = [0] * counts
        self.buckets = [0] * (len(bounds) + 1)
        self.shortest = self.longest = 0

    def add(self, clock: Clock) -> None:
        """Add a request."""
        wall = clock.wall_ns
        self.shortest = min(self.shortest, wall) if any(self.buckets) else wall
        self.longest = max(self.longest, wall)
        self.buckets[bisect_left(self._bounds, wall)] += 1
        self.counts = [sum(both) for both in zip(self.counts, clock.counts)]
        add(clock.spent(), self._cells)

    def copy(self) -> Totals:
        """Return what it is now."""
        return deepcopy(self)

    def spent(self) -> dict[int, int]:
        """Return the nanoseconds of each cell that has any."""
        return dict(self._cells)

    @property
    def wall_ns(self) -> int:
        """How long they took."""
        return sum(self._cells.values())
