"""Keylag's own tracer provider, configured by OpenTelemetry's variables.

It exists only if OTEL_TRACES_EXPORTER names an exporter.  The global provider stays
unchanged: OSProfiler's OTLP driver, among others, sets it before the server forks.
"""

from __future__ import annotations

import logging

from opentelemetry.trace import TracerProvider

from keylag_otel import environment
from keylag_otel.log_rate_limit import RateLimitFilter, add_log_filter
from keylag_otel.meter_provider import (
    TRACES,
    exporter_names,
    make_exporters,
    worker_resource,
)
from keylag_otel.shutdown import FlushAtExit

LOG = logging.getLogger("keylag_otel")


def build() -> TracerProvider | None:
    """Start a provider that flushes at exit; None if no exporter is configured."""
    names = exporter_names(signal=TRACES)
    if not names:
        return None
    try:
        from opentelemetry.sdk import resources  # noqa: PLC0415 - the SDK is optional
        from opentelemetry.sdk import trace as sdk  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import (  # noqa: PLC0415
            BatchSpanProcessor,
        )

        from keylag_otel.traces.sampler import ForcibleSampler  # noqa: PLC0415
    except ImportError:
        LOG.warning(
            "keylag exports no traces: the OpenTelemetry SDK is not installed; "
            "install keylag-otel[otlp]"
        )
        return None
    exporters = make_exporters(names, TRACES)
    add_log_filter(RateLimitFilter, BatchSpanProcessor)
    resource = worker_resource(resources.Resource)
    provider = sdk.TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.sampler = ForcibleSampler(provider.sampler)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    FlushAtExit(provider.shutdown, environment.last_export_seconds())
    return provider
