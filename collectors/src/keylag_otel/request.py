"""The outermost WSGI layer: it times a request, traces it and aggregates it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial, wraps
from typing import Any, Callable

from keylag_otel import environment, telemetry
from keylag_otel.guard import attempt
from keylag_otel.patches import patch, replace
from keylag_otel.request_aggregator import AGGREGATOR, RequestAggregator
from keylag_otel.request_timer import RequestTimer, current_timer, start_timer
from keylag_otel.response import Application, Headers, ResponseRecorder, StartResponse
from keylag_otel.server_timing import header_predicate, server_timing
from keylag_otel.traces import tracing
from keylag_otel.wrappers import Call, count_fault


def wrap_app_setup(setup: Call) -> Call:
    """Wrap the application, outside of all middleware that Keystone sets up."""

    @wraps(setup)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        app = setup(*args, **kwargs)
        attempt("measure the application", patch, app, _wrap_wsgi_app)
        return app

    return wrapper


def _wrap_wsgi_app(app: Any) -> None:
    replace(app, "wsgi_app", TimedApplication(app.wsgi_app, partial(match_route, app)))


def match_route(app: Any, environ: dict[str, Any]) -> str | None:
    """Return the rule that Flask would match, or None."""
    try:
        rule, _ = app.url_map.bind_to_environ(environ).match(return_rule=True)
    except Exception:
        return None
    return str(rule.rule)


def _no_route(environ: Any) -> None:
    """Return no route, for services."""


class TimingMiddleware:
    """Times WSGI requests; responses pass through unchanged."""

    def __init__(
        self,
        find_route: Callable[[Any], str | None] = _no_route,
        aggregator: RequestAggregator = AGGREGATOR,
    ) -> None:
        self._find_route = find_route
        self._aggregator = aggregator
        self._gets_header = header_predicate()
        self._adds_sql_comment = environment.sql_comment()
        self._needs_setup = bool(self._gets_header or self._adds_sql_comment)

    def serve(
        self,
        application: Application,
        environ: dict[str, Any],
        start_response: StartResponse,
    ) -> Iterable[bytes]:
        """Serve a request and aggregate its breakdown; only call if it is nested."""
        if current_timer() is not None:
            return application(environ, start_response)
        telemetry.start_once_per_process()
        timer = start_timer(environ)
        recorder = ResponseRecorder(
            timer,
            start_response,
            self._aggregator,
            self._find_route,
            self._finish_trace,
        )
        if self._needs_setup or tracing.State.tracing:
            return self._serve_with_options(application, recorder, timer)
        return recorder.serve(application)

    def _serve_with_options(
        self, application: Application, recorder: ResponseRecorder, timer: RequestTimer
    ) -> Iterable[bytes]:
        pending = tracing.begin_trace(timer)
        if pending:
            recorder.finish_trace = partial(self._finish_trace, pending=pending)
        if self._gets_breakdown(timer.environ):
            recorder.add_timing = add_server_timing
        if self._adds_sql_comment:
            # Keystone sends statements before Flask matches the route.
            timer.route = self._find_route(timer.environ)
        token = pending and tracing.attach_span(pending)
        try:
            return recorder.serve(application)
        finally:
            if token:
                tracing.detach_span(token)

    def _gets_breakdown(self, environ: dict[str, Any]) -> bool:
        try:
            return bool(self._gets_header and self._gets_header(environ))
        except Exception:
            count_fault(header_predicate)
            return False

    def _finish_trace(
        self,
        timer: RequestTimer,
        status: int,
        pending: tracing.PendingTrace | None = None,
    ) -> None:
        if not tracing.should_send(timer):
            self._aggregator.add(timer, status)
            return
        with tracing.finish_trace(pending, timer, status):
            self._aggregator.add(timer, status)
            self._aggregator.record_exemplar(timer, status)


class TimedApplication(TimingMiddleware):
    """A timed WSGI application."""

    #: False after `undo`, if another wrapper still calls it.
    is_enabled = True

    def __init__(self, application: Application, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._application = application

    def __call__(  # noqa: D102 - WSGI
        self, environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes]:
        if not self.is_enabled:
            return self._application(environ, start_response)
        return self.serve(self._application, environ, start_response)


def add_server_timing(timer: RequestTimer, headers: Headers) -> Headers:
    """Return headers with the breakdown appended."""
    return [*headers, ("Server-Timing", server_timing(timer))]
