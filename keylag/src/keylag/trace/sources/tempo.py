"""Reads traces from Tempo over its HTTP API."""

from keylag.location import without_credentials
from keylag.trace.model import Trace
from keylag.trace.otlp import get_json, otel_trace_id, parse_resource_spans


def read(location: str, trace_id: str) -> Trace:
    """Read a trace from tempo+http://host:3200; raises TraceError."""
    url = location.removeprefix("tempo+")
    document = get_json(url, f"/api/traces/{otel_trace_id(trace_id)}")
    # OTLP says resourceSpans; older releases of Tempo say batches.
    groups = document.get("resourceSpans") or document.get("batches") or ()
    return parse_resource_spans(groups, trace_id, without_credentials(location))
