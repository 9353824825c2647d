"""The parts of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Callable

from keylag_otel.pure.clock import Clock, Hooks, active


class Body:
    """An answer whose parts are made while they are sent.

    Only the making is booked: a slow client is not Keystone's time.  `finish` is
    called when it is closed, which a server does once.
    """

    __slots__ = ("_body", "_clock", "_finish", "_parts")

    def __init__(
        self, body: Iterable[bytes], clock: Clock, finish: Callable[[], Any]
    ) -> None:
        self._body = body
        self._clock = clock
        self._finish = finish
        self._parts: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        part: bytes = self._measured(self._next)
        return part

    def _next(self) -> bytes:
        if self._parts is None:
            self._parts = iter(self._body)
        return next(self._parts)

    def _measured(self, step: Callable[[], Any]) -> Any:
        self._clock.mark = Hooks.now()  # what passed before was spent elsewhere
        active.set(self._clock)
        try:
            return step()
        finally:
            active.set(None)
            self._clock.book()

    def close(self) -> None:
        """Close what was wrapped, and end the request."""
        try:
            self._measured(getattr(self._body, "close", _nothing))
        finally:
            self._finish()


def _nothing() -> None:
    """Stand in for the `close` that a body need not have."""
