"""Reads traces from Jaeger over version 3 of its HTTP API."""

from keylag.location import without_credentials
from keylag.trace.model import Trace
from keylag.trace.otlp import get_json, otel_trace_id, parse_resource_spans


def read(location: str, trace_id: str) -> Trace:
    """Read a trace from jaeger+http://host:16686; raises TraceError."""
    url = location.removeprefix("jaeger+")
    document = get_json(url, f"/api/v3/traces/{otel_trace_id(trace_id)}")
    groups = document.get("result", {}).get("resourceSpans", ())
    return parse_resource_spans(groups, trace_id, without_credentials(location))
