"""A tracer provider of our own, as OpenTelemetry's variables describe it.

Only where OTEL_TRACES_EXPORTER names an exporter.  The global provider is left
to whoever has set it: OSProfiler's OTLP driver is one, and sets it before the
server forks.
"""

from __future__ import annotations

import logging

from opentelemetry.trace import TracerProvider

from keylag_otel import environment
from keylag_otel.farewell import Farewell
from keylag_otel.provider import (
    TRACES,
    exporter_names,
    instance_id,
    make_exporters,
)
from keylag_otel.seldom import Seldom, hear_less

LOG = logging.getLogger("keylag_otel")


def build() -> TracerProvider | None:
    """Start a provider that closes itself in time; None without one to start."""
    names = exporter_names(signal=TRACES)
    if not names:
        return None
    try:
        from opentelemetry.sdk import resources  # noqa: PLC0415 - the SDK is optional
        from opentelemetry.sdk import trace as sdk  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import (  # noqa: PLC0415
            BatchSpanProcessor,
        )

        from keylag_otel.traces.sampler import KeepingSampler  # noqa: PLC0415
    except ImportError:
        LOG.warning(
            "keylag exports no traces: the OpenTelemetry SDK is not installed; "
            "install keylag-otel[otlp]"
        )
        return None
    exporters = make_exporters(names, TRACES)
    hear_less(Seldom, BatchSpanProcessor)
    resource = resources.Resource.create({"service.instance.id": instance_id()})
    provider = sdk.TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.sampler = KeepingSampler(provider.sampler)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    Farewell(provider.shutdown, environment.last_export_seconds())
    return provider
