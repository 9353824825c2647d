"""Which rate of requests is tried next, and when to stop.

The rates are a geometric grid around the first one, in steps of 5 %.  A galloping
search (J. L. Bentley and A. C. Yao, "An almost optimal algorithm for unbounded
searching", 1976) doubles the distance from the first rate until one rate is held and a
higher one is not.  Bisection then finds two neighbours on the grid.

A rate that is not held is tried a second time, because a hiccup of the machine can make
Keystone slow for a moment, but nothing makes it fast.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

STEP_RATIO: Final = 1.05
"""Of two neighbouring rates: the resolution of the result."""
FIRST_STRIDE: Final = 4
"""In steps of the grid, about 22 %."""
TRIALS: Final = 2
"""Failed trials after which a rate counts as not held."""
MIN_RATE: Final = 0.1
MAX_RATE: Final = 5000.0
"""Requests per second, about; the search ends at these."""


@dataclass
class Ramp:
    """The search for the highest rate that is held."""

    first_rate: float
    """In requests per second."""
    _held: int | None = None
    _not_held: int | None = None
    _index: int | None = 0
    """On the grid, of the next trial; None at the end."""
    _failed: Counter[int] = field(default_factory=Counter)

    @property
    def next_rate(self) -> float | None:
        """The rate of the next trial in requests per second; None at the end."""
        return self._rate(self._index)

    @property
    def held(self) -> float | None:
        """The highest rate that was held; None if none was."""
        return self._rate(self._held)

    @property
    def not_held(self) -> float | None:
        """The lowest rate that was not held in any trial; None if there is none."""
        return self._rate(self._not_held)

    def _rate(self, index: int | None) -> float | None:
        return None if index is None else self.first_rate * STEP_RATIO**index

    def record(self, *, held: bool) -> None:
        """Record the result of the trial at `next_rate`."""
        index = self._index
        if index is None:
            message = "the search has ended"
            raise ValueError(message)
        if held:
            self._held = index
        else:
            self._failed[index] += 1
            if self._failed[index] < TRIALS:
                return
            self._not_held = index
        self._index = self._next_index()

    def _next_index(self) -> int | None:
        if self._held is not None and self._not_held is not None:
            middle = (self._held + self._not_held) // 2
            return None if middle == self._held else middle
        if self._held is not None:
            higher = max(FIRST_STRIDE, 2 * self._held)
            higher = min(higher, self._nearest_index(MAX_RATE))
            return higher if higher > self._held else None
        lowest = self._not_held or 0
        lower = min(-FIRST_STRIDE, 2 * lowest)
        lower = max(lower, self._nearest_index(MIN_RATE))
        return lower if lower < lowest else None

    def _nearest_index(self, rate: float) -> int:
        return round(math.log(rate / self.first_rate, STEP_RATIO))
