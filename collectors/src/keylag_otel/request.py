"""One request: start its clock, run Keystone, book what came out of it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial, wraps
from typing import Any, Callable

from keylag_otel import sql_comment, telemetry
from keylag_otel.clock import Body, active, start
from keylag_otel.ledger import LEDGER, Ledger
from keylag_otel.server_timing import server_timing, whose
from keylag_otel.traces import tracing
from keylag_otel.wrappers import Call, fault

StartResponse = Callable[..., Any]
Application = Callable[["dict[str, Any]", StartResponse], Iterable[bytes]]


def measured_app(setup: Call) -> Call:
    """Put the stopwatch around everything that Keystone puts around its app."""

    @wraps(setup)
    def watched(app: Any, *args: Any, **kwargs: Any) -> Any:
        app = setup(app, *args, **kwargs)
        app.wsgi_app = Measured(app.wsgi_app, partial(route_of, app))
        return app

    return watched


def route_of(app: Any, environ: dict[str, Any]) -> str | None:
    """Return the rule that Flask would match; None if there is none."""
    try:
        rule, _ = app.url_map.bind_to_environ(environ).match(return_rule=True)
    except Exception:
        return None
    return str(rule.rule)


def _no_route(environ: Any) -> None:
    """Know no routes."""


class Measured:
    """A WSGI application, measured; its answer passes through untouched."""

    def __init__(
        self,
        application: Application,
        route: Callable[[Any], str | None] = _no_route,
        ledger: Ledger = LEDGER,
    ) -> None:
        self._application = application
        self._route = route
        self._ledger = ledger
        self._answer_timing = whose()

    def __call__(  # noqa: D102 - WSGI
        self, environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes]:
        if active.get() is not None:
            return self._application(environ, start_response)
        telemetry.start_once_per_process()
        request = _Request(
            environ, start_response, self._ledger, timing=self._answer_timing(environ)
        )
        clock = request.clock
        if sql_comment.Switch.on:
            # The first statements are sent before Flask matches the route.
            clock.route = self._route(environ)
        active.set(clock)
        token = request.head and tracing.entered(request.head)
        try:
            body = self._application(environ, request.start_response)
        except BaseException:
            request.finish()
            raise
        finally:
            active.set(None)
            if token:
                tracing.left(token)
            if clock.route is None:
                # Refused by a middleware, before Flask matched the route.
                clock.route = self._route(environ)
        if isinstance(body, (list, tuple)):
            request.finish()
            return body
        clock.book()
        return Body(body, clock, request.finish)


class _Request:
    """What is known of a request beside its clock."""

    __slots__ = (
        "_finished",
        "_ledger",
        "_start_response",
        "_status",
        "_timing",
        "clock",
        "head",
    )

    def __init__(
        self,
        environ: dict[str, Any],
        start_response: StartResponse,
        ledger: Ledger,
        *,
        timing: bool,
    ) -> None:
        self._ledger = ledger
        self._start_response = start_response
        self._status = 500  # what a server answers when nothing was started
        self._timing = timing
        self.clock = start(environ.get("REQUEST_METHOD", ""))
        self.head = tracing.begin(environ, self.clock)
        self._finished = False

    def start_response(
        self, status: str, headers: list[tuple[str, str]], *exc_info: Any
    ) -> Any:
        """Pass the start of the answer on, with the breakdown if asked for."""
        try:
            self._status = int(status[:3])
            if self._timing:
                self.clock.book()
                headers = [*headers, ("Server-Timing", server_timing(self.clock))]
        except Exception:
            fault(self.start_response)
        return self._start_response(status, headers, *exc_info)

    def finish(self) -> None:
        """Stop the clock and book it; a second call does nothing."""
        if self._finished:
            return
        self._finished = True
        try:
            clock = self.clock
            clock.book()
            if not (clock.writes and tracing.is_wanted(clock)):
                self._ledger.add(clock.method, self._status, clock)
                return
            with tracing.finished(self.head, clock, self._status):
                self._ledger.add(clock.method, self._status, clock)
        except Exception:
            fault(self.finish)
