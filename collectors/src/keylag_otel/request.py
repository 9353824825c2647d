"""One request: start its clock, run Keystone, book what came out of it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial, wraps
from typing import Any, Callable

from keylag_otel import environment, telemetry
from keylag_otel.clock import Answer, Clock, active, start
from keylag_otel.ledger import LEDGER, Ledger
from keylag_otel.pure.answer import Application, Headers, StartResponse
from keylag_otel.server_timing import server_timing, whose
from keylag_otel.traces import tracing
from keylag_otel.wrappers import Call


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
        self._is_told = whose()
        self._comments = environment.sql_comment()
        self._is_special = bool(self._is_told or self._comments)

    def __call__(  # noqa: D102 - WSGI
        self, environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes]:
        if active.get() is not None:
            return self._application(environ, start_response)
        telemetry.start_once_per_process()
        clock = start(environ)
        answer = Answer(clock, start_response, self._ledger, self._route, self._traced)
        if self._is_special or tracing.Process.tracing:
            return self._serve_specially(answer, clock)
        return answer.serve(self._application)

    def _serve_specially(self, answer: Answer, clock: Clock) -> Iterable[bytes]:
        """Serve a request that may be traced, told its breakdown or commented."""
        head = tracing.begin(clock)
        if head:
            answer.traced = partial(self._traced, head=head)
        if self._is_told and self._is_told(clock.environ):
            answer.timing = with_breakdown
        if self._comments:
            # The first statements are sent before Flask matches the route.
            clock.route = self._route(clock.environ)
        token = head and tracing.entered(head)
        try:
            return answer.serve(self._application)
        finally:
            if token:
                tracing.left(token)

    def _traced(
        self, clock: Clock, status: int, head: tracing.Head | None = None
    ) -> None:
        """End a request that has written down what it did."""
        if not tracing.is_wanted(clock):
            self._ledger.add(clock, status)
            return
        with tracing.finished(head, clock, status):
            self._ledger.add(clock, status)
            self._ledger.exemplify(clock, status)


def with_breakdown(clock: Clock, headers: Headers) -> Headers:
    """Return the headers of an answer with one more, the breakdown."""
    return [*headers, ("Server-Timing", server_timing(clock))]
