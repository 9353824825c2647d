"""One request: start its clock, run Keystone, book what came out of it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial, wraps
from typing import Any, Callable

from keylag_otel import environment, telemetry
from keylag_otel.answer import Answer, Application, Headers, StartResponse
from keylag_otel.clock import Clock, current, start
from keylag_otel.guard import attempt
from keylag_otel.ledger import LEDGER, Ledger
from keylag_otel.patches import patch, replace
from keylag_otel.server_timing import server_timing, whose
from keylag_otel.traces import tracing
from keylag_otel.wrappers import Call, fault


def measured_app(setup: Call) -> Call:
    """Put the stopwatch around everything that Keystone puts around its app."""

    @wraps(setup)
    def watched(*args: Any, **kwargs: Any) -> Any:
        app = setup(*args, **kwargs)
        attempt("measure the application", patch, app, _measure)
        return app

    return watched


def _measure(app: Any) -> None:
    replace(app, "wsgi_app", Measured(app.wsgi_app, partial(route_of, app)))


def route_of(app: Any, environ: dict[str, Any]) -> str | None:
    """Return the rule that Flask would match; None if there is none."""
    try:
        rule, _ = app.url_map.bind_to_environ(environ).match(return_rule=True)
    except Exception:
        return None
    return str(rule.rule)


def _no_route(environ: Any) -> None:
    """Know no routes."""


class Measuring:
    """Serves WSGI requests with a stopwatch; answers pass through untouched."""

    def __init__(
        self,
        route: Callable[[Any], str | None] = _no_route,
        ledger: Ledger = LEDGER,
    ) -> None:
        self._route = route
        self._ledger = ledger
        self._is_told = whose()
        self._comments = environment.sql_comment()
        self._is_special = bool(self._is_told or self._comments)

    def serve(
        self,
        application: Application,
        environ: dict[str, Any],
        start_response: StartResponse,
    ) -> Iterable[bytes]:
        """Serve a request, and book what came out of it."""
        if current() is not None:
            return application(environ, start_response)
        telemetry.start_once_per_process()
        clock = start(environ)
        answer = Answer(clock, start_response, self._ledger, self._route, self._traced)
        if self._is_special or tracing.Process.tracing:
            return self._serve_specially(application, answer, clock)
        return answer.serve(application)

    def _serve_specially(
        self, application: Application, answer: Answer, clock: Clock
    ) -> Iterable[bytes]:
        """Serve a request that may be traced, told its breakdown or commented."""
        head = tracing.begin(clock)
        if head:
            answer.traced = partial(self._traced, head=head)
        if self._wants_breakdown(clock.environ):
            answer.timing = with_breakdown
        if self._comments:
            # The first statements are sent before Flask matches the route.
            clock.route = self._route(clock.environ)
        token = head and tracing.entered(head)
        try:
            return answer.serve(application)
        finally:
            if token:
                tracing.left(token)

    def _wants_breakdown(self, environ: dict[str, Any]) -> bool:
        try:
            return bool(self._is_told and self._is_told(environ))
        except Exception:
            fault(whose)
            return False

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


class Measured(Measuring):
    """A WSGI application, measured."""

    #: False where it is left beneath somebody else's wrapper, but is to do nothing.
    is_on = True

    def __init__(self, application: Application, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._application = application

    def __call__(  # noqa: D102 - WSGI
        self, environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes]:
        if not self.is_on:
            return self._application(environ, start_response)
        return self.serve(self._application, environ, start_response)


def with_breakdown(clock: Clock, headers: Headers) -> Headers:
    """Return the headers of an answer with one more, the breakdown."""
    return [*headers, ("Server-Timing", server_timing(clock))]
