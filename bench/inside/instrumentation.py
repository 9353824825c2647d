"""The compared instrumentations, and how each is loaded into Keystone.

Each factory runs before Keystone is imported; environment variables configure it.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Any]


def _none() -> None:
    """Do nothing."""


def _no_spans() -> int:
    return 0


@dataclass(frozen=True)
class Instrumentation:
    """Keystone's application, and the controls of its instrumentation."""

    application: Application
    headers: Mapping[str, str] = field(default_factory=dict)
    """Additional headers of each request, by their WSGI names."""
    flush: Callable[[], None] = _none
    """Sends pending spans."""
    instrument_service: Callable[[], None] = _none
    """Instruments the auth_token of services too."""
    spans: Callable[[], int] = _no_spans
    """Spans recorded since the start; some count only after a flush."""


def _keystone() -> Application:
    # Keystone parses the arguments of the process on import.
    arguments, sys.argv = sys.argv, sys.argv[:1]
    try:
        from keystone.wsgi.api import application
    finally:
        sys.argv = arguments
    loaded: Application = application
    return loaded


def bare() -> Instrumentation:
    """Keystone without instrumentation."""
    return Instrumentation(_keystone())


def keylag() -> Instrumentation:
    """Keylag's collectors, as an operator loads them."""
    from keylag_otel import AuthTokenInstrumentor
    from keylag_otel.wsgi import application

    return Instrumentation(
        application, instrument_service=lambda: AuthTokenInstrumentor().instrument()
    )


class SpanCounter:
    """Counts the spans that an exporter gets."""

    def __init__(self, exporter: Any) -> None:
        self.count = 0
        self._export = exporter.export
        exporter.export = self.export

    def export(self, spans: Sequence[Any]) -> Any:
        """Export a batch."""
        self.count += len(spans)
        return self._export(spans)


def otel() -> Instrumentation:
    """OpenTelemetry's own instrumentations; all spans are recorded and exported.

    The WSGI middleware is outermost: inside of Flask, it would miss Keystone's token
    validation.
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
    counter = SpanCounter(exporter)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    for kind in (SQLAlchemyInstrumentor, PymemcacheInstrumentor, RedisInstrumentor):
        kind().instrument()
    return Instrumentation(
        OpenTelemetryMiddleware(_keystone()),
        flush=lambda: _flush(provider),
        spans=lambda: counter.count,
    )


def _flush(provider: Any) -> None:
    provider.force_flush()


class CountingNotifier:
    """Passes OSProfiler's notifications on and counts the started points."""

    def __init__(self, notify: Callable[..., None]) -> None:
        self._notify = notify
        self.count = 0

    def __call__(self, info: Mapping[str, Any]) -> None:
        """Send a notification of the start or stop of a point."""
        self.count += info["name"].endswith("-start")
        self._notify(info)


def osprofiler() -> Instrumentation:
    """OSProfiler as in Keystone's [profiler] options; all requests are signed."""
    application = _keystone()
    from osprofiler import notifier, profiler, web

    counting = CountingNotifier(notifier.get())
    notifier.set(counting)
    profiler.init(os.environ["OS_PROFILER__HMAC_KEYS"])
    signed = web.get_trace_id_headers()
    profiler.clean()
    return Instrumentation(
        application,
        headers={_wsgi_name(name): value for name, value in signed.items()},
        spans=lambda: counting.count,
    )


def _wsgi_name(header: str) -> str:
    return "HTTP_" + header.upper().replace("-", "_")


MAKERS: Mapping[str, Callable[[], Instrumentation]] = {
    "bare": bare,
    "keylag": keylag,
    "otel": otel,
    "osprofiler": osprofiler,
}
"""By the names of instrumentations in keylag_bench."""
