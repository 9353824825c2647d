"""The instrumentations that are compared: how each gets into a Keystone.

One maker each, called before Keystone is imported; all else that they need comes as
environment variables.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Any]


def _none() -> None:
    """Nothing is to be done."""


def _no_spans() -> int:
    """Nothing records spans."""
    return 0


@dataclass(frozen=True)
class Instrumented:
    """Keystone's application, and how to ask its instrumentation things."""

    application: Application
    headers: Mapping[str, str] = field(default_factory=dict)
    """What each request carries besides its own, in WSGI's names."""
    flush: Callable[[], None] = _none
    """Sends what is waiting."""
    watch_service: Callable[[], None] = _none
    """Instruments the auth_token of services, too."""
    spans: Callable[[], int] = _no_spans
    """Spans recorded since the start; some only count when they are flushed."""


def _keystone() -> Application:
    """Import Keystone; it reads the process's arguments, which are not its own."""
    arguments, sys.argv = sys.argv, sys.argv[:1]
    try:
        from keystone.wsgi.api import application
    finally:
        sys.argv = arguments
    loaded: Application = application
    return loaded


def bare() -> Instrumented:
    """Keystone as it is."""
    return Instrumented(_keystone())


def keylag() -> Instrumented:
    """Keylag's collectors, as an operator loads them."""
    from keylag_otel import AuthTokenInstrumentor
    from keylag_otel.wsgi import application

    return Instrumented(
        application, watch_service=lambda: AuthTokenInstrumentor().instrument()
    )


class Exports:
    """Counts the spans that an exporter is given, a batch at a time."""

    def __init__(self, exporter: Any) -> None:
        self.count = 0
        self._export = exporter.export
        exporter.export = self.export

    def export(self, spans: Sequence[Any]) -> Any:
        """Export a batch."""
        self.count += len(spans)
        return self._export(spans)


def otel() -> Instrumented:
    """OpenTelemetry's own instrumentations, every span recorded and exported.

    The WSGI middleware goes outermost: inside Flask, Keystone's token validation
    would be outside the trace.
    """
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.instrumentation.pymemcache import PymemcacheInstrumentor
    from opentelemetry.instrumentation.redis import RedisInstrumentor
    from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor
    from opentelemetry.instrumentation.wsgi import OpenTelemetryMiddleware
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    exporter = OTLPSpanExporter()
    exports = Exports(exporter)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    for kind in (SQLAlchemyInstrumentor, PymemcacheInstrumentor, RedisInstrumentor):
        kind().instrument()
    return Instrumented(
        OpenTelemetryMiddleware(_keystone()),
        flush=lambda: _flush(provider),
        spans=lambda: exports.count,
    )


def _flush(provider: Any) -> None:
    provider.force_flush()


class CountingNotifier:
    """Passes OSProfiler's messages on and counts the spans they begin."""

    def __init__(self, notify: Callable[..., None]) -> None:
        self._notify = notify
        self.count = 0

    def __call__(self, info: Mapping[str, Any]) -> None:
        """Send one message, the start or the stop of a span."""
        self.count += info["name"].endswith("-start")
        self._notify(info)


def osprofiler() -> Instrumented:
    """OSProfiler as Keystone's [profiler] options set it up, each request signed."""
    application = _keystone()
    from osprofiler import notifier, profiler, web

    counting = CountingNotifier(notifier.get())
    notifier.set(counting)
    profiler.init(os.environ["OS_PROFILER__HMAC_KEYS"])
    signed = web.get_trace_id_headers()
    profiler.clean()
    return Instrumented(
        application,
        headers={_wsgi_name(name): value for name, value in signed.items()},
        spans=lambda: counting.count,
    )


def _wsgi_name(header: str) -> str:
    return "HTTP_" + header.upper().replace("-", "_")


MAKERS: Mapping[str, Callable[[], Instrumented]] = {
    "bare": bare,
    "keylag": keylag,
    "otel": otel,
    "osprofiler": osprofiler,
}
"""By the names that keylag_bench.arms uses."""
