"""A time in which calls were measured."""

from typing import NamedTuple


class Window(NamedTuple):
    """From one time to a later one, in Unix seconds."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.start

    def holds(self, other: "Window") -> bool:
        """Return whether another window is within this one."""
        return self.start <= other.start and other.end <= self.end
