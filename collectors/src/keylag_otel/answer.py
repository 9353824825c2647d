"""A request's way out.

It runs once in a request, so it is in Python alone: in C it would save less than a
thousandth of the shortest one (bench/parts.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Callable

from keylag_otel.clock import HALF, Clock, Sums

StartResponse = Callable[..., Any]
Headers = list[tuple[str, str]]
Application = Callable[["dict[str, Any]", StartResponse], Iterable[bytes]]


class Answer:
    """A request's answer, from its start to its end.

    It is what the application calls as WSGI's `start_response`, and what the server
    sends, if its parts are made while they are sent.  Only the making is booked: a
    slow client is not Keystone's time.  `timing`, if it is set, returns the headers
    with a breakdown.  `route` knows the route of a request that Flask has not
    matched; one that has written down what it did ends with `traced`, any other in
    the `ledger`.
    """

    #: The module whose clocks it works with.
    half = HALF

    __slots__ = (
        "_body",
        "_clock",
        "_ended",
        "_ledger",
        "_parts",
        "_route",
        "_start_response",
        "_status",
        "timing",
        "traced",
    )

    def __init__(
        self,
        clock: Clock,
        start_response: StartResponse,
        ledger: Sums,
        route: Callable[[dict[str, Any]], str | None],
        traced: Callable[[Clock, int], None],
    ) -> None:
        self._clock = clock
        self._start_response = start_response
        self._ledger = ledger
        self._route = route
        self.timing: Callable[[Clock, Headers], Headers] | None = None
        self.traced = traced
        self._status = 500  # what a server answers when nothing was started
        self._ended = False
        self._body: Iterable[bytes] = ()
        self._parts: Iterator[bytes] | None = None

    def __call__(
        self, status: str, headers: Headers, /, *args: Any, **names: Any
    ) -> Any:
        """Pass the start of the answer on, with the breakdown if there is to be one."""
        try:
            self._status = status_of(status)
            if self.timing is not None:
                self._clock.book()
                headers = self.timing(self._clock, headers)
        except Exception:
            self.half.report_fault(Answer)
        return self._start_response(status, headers, *args, **names)

    def serve(self, application: Application, /) -> Iterable[bytes]:
        """Return what the server gets; what is made already ends the request."""
        made = True
        self.half.activate(self._clock)
        try:
            body = application(self._clock.environ, self)
            made = isinstance(body, (list, tuple))
        finally:
            self.half.deactivate(self._clock)
            if made:
                self._end()
        if made:
            return body
        self._clock.book()
        self._body = body
        return self

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
        self._clock.skip()
        self.half.activate(self._clock)
        try:
            return step()
        finally:
            self.half.deactivate(self._clock)
            self._clock.book()

    def close(self) -> None:
        """Close what was wrapped, and end the request."""
        try:
            self._measured(getattr(self._body, "close", _nothing))
        finally:
            self._end()

    def _end(self) -> None:
        """Stop the clock and add it up; a second time does nothing."""
        if self._ended:
            return
        self._ended = True
        try:
            self._clock.book()
            if self._clock.route is None:
                self._clock.route = self._route(self._clock.environ)
            add = self.traced if self._clock.writes else self._ledger.add
            add(self._clock, self._status)
        except Exception:
            self.half.report_fault(Answer)


def status_of(line: Any) -> int:
    """Return the status that "200 OK" begins with; ValueError if there is none."""
    status = int(line[:3])
    if not 100 <= status <= 999:  # noqa: PLR2004 - three digits
        message = "a status is from 100 to 999"
        raise ValueError(message)
    return status


def _nothing() -> None:
    """Stand in for the `close` that a body need not have."""
