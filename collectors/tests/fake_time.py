"""A fake time source."""

from __future__ import annotations


class FakeTime:
    """A time source in nanoseconds that tests advance."""

    def __init__(self) -> None:
        self.value = 1_000

    def __call__(self) -> int:
        return self.value

    def passes(self, nanoseconds: int) -> None:
        self.value += nanoseconds
