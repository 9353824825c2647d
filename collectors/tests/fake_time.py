"""A clock for tests."""

from __future__ import annotations


class FakeTime:
    """Time that passes only when a test says so; nanoseconds."""

    def __init__(self) -> None:
        self.value = 1_000

    def __call__(self) -> int:
        return self.value

    def passes(self, nanoseconds: int) -> None:
        self.value += nanoseconds
