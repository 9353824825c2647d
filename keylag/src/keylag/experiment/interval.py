"""An interval for a difference."""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval; ends are infinite while the data is too small."""

    low: float
    mid: float
    high: float

    def mapped(self, function: Callable[[float], float]) -> "Interval":
        """Return the interval of an increasing function of the value."""
        return Interval(function(self.low), function(self.mid), function(self.high))

    def scaled(self, factor: float) -> "Interval":
        """Return the interval in another unit; `factor` must be positive."""
        return self.mapped(lambda value: value * factor)

    def at_least(self, bound: float) -> "Interval":
        """Return the interval without values below a bound, but with its estimate."""
        return Interval(max(self.low, min(bound, self.mid)), self.mid, self.high)

    @property
    def is_bounded(self) -> bool:
        """Whether the data is large enough for both ends."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def holds_zero(self) -> bool:
        """Whether there may be no difference."""
        return self.low <= 0 <= self.high
