"""The response recorder: it sees the WSGI response until its last byte.

It runs once per request, so it has no native part: C would save less than a
thousandth of the shortest request (bench/parts.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Callable

from keylag_otel.request_timer import HOT_PATH, Aggregator, RequestTimer

StartResponse = Callable[..., Any]
Headers = list[tuple[str, str]]
Application = Callable[["dict[str, Any]", StartResponse], Iterable[bytes]]


class ResponseRecorder:
    """Measures the response of one request and closes the measurement.

    It replaces WSGI's `start_response`, and the body if the application streams it.
    It measures how long the application takes for each chunk of the body, not how
    long the server takes to send it.

    `find_route` returns the route of a request that Flask did not match.  At the end,
    a request that recorded events goes to `finish_trace`, any other to `aggregator`.
    ``add_timing``, unless it is None, returns the headers with a breakdown.
    """

    #: The module of its timers: the native or the pure part.
    hot_path = HOT_PATH

    __slots__ = (
        "_aggregator",
        "_body",
        "_chunks",
        "_find_route",
        "_is_finished",
        "_start_response",
        "_status",
        "_timer",
        "add_timing",
        "finish_trace",
    )

    def __init__(
        self,
        timer: RequestTimer,
        start_response: StartResponse,
        aggregator: Aggregator,
        find_route: Callable[[dict[str, Any]], str | None],
        finish_trace: Callable[[RequestTimer, int], None],
    ) -> None:
        self._timer = timer
        self._start_response = start_response
        self._aggregator = aggregator
        self._find_route = find_route
        self.add_timing: Callable[[RequestTimer, Headers], Headers] | None = None
        self.finish_trace = finish_trace
        self._status = 500  # of the server, unless the application starts a response
        self._is_finished = False
        self._body: Iterable[bytes] = ()
        self._chunks: Iterator[bytes] | None = None

    def __call__(
        self, status: str, headers: Headers, /, *args: Any, **names: Any
    ) -> Any:
        """Record the status and start the response, with the breakdown if wanted."""
        try:
            self._status = parse_status(status)
            if self.add_timing is not None:
                self._timer.accumulate()
                headers = self.add_timing(self._timer, headers)
        except Exception:
            self.hot_path.report_fault(ResponseRecorder)
        return self._start_response(status, headers, *args, **names)

    def serve(self, application: Application, /) -> Iterable[bytes]:
        """Call the application; return its body, or self to measure a streamed body."""
        is_complete = True
        self.hot_path.activate(self._timer)
        try:
            body = application(self._timer.environ, self)
            is_complete = isinstance(body, (list, tuple))
        finally:
            self.hot_path.deactivate(self._timer)
            if is_complete:
                self._finish()
        if is_complete:
            return body
        self._timer.accumulate()
        self._body = body
        return self

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk: bytes = self._timed(self._next_chunk)
        return chunk

    def _next_chunk(self) -> bytes:
        if self._chunks is None:
            self._chunks = iter(self._body)
        return next(self._chunks)

    def _timed(self, call: Callable[[], Any]) -> Any:
        self._timer.discard_elapsed()
        self.hot_path.activate(self._timer)
        try:
            return call()
        finally:
            self.hot_path.deactivate(self._timer)
            self._timer.accumulate()

    def close(self) -> None:
        """Close the body and finish the request."""
        try:
            self._timed(getattr(self._body, "close", _no_close))
        finally:
            self._finish()

    def _finish(self) -> None:
        if self._is_finished:
            return
        self._is_finished = True
        try:
            self._timer.accumulate()
            if self._timer.route is None:
                self._timer.route = self._find_route(self._timer.environ)
            if self._timer.records_events:
                self.finish_trace(self._timer, self._status)
            else:
                self._aggregator.add(self._timer, self._status)
        except Exception:
            self.hot_path.report_fault(ResponseRecorder)


def parse_status(line: Any) -> int:
    """Return the status code of a status line such as "200 OK".

    Raises ValueError or TypeError if the line has none.
    """
    status = int(line[:3])
    if not 100 <= status <= 999:  # noqa: PLR2004 - three digits
        message = "status code not between 100 and 999"
        raise ValueError(message)
    return status


def _no_close() -> None:
    """Replace the `close` that a body may lack."""
