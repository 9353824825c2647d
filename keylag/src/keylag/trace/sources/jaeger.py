"""Jaeger: asked over version 3 of its HTTP interface, which answers in OTLP."""

from keylag.trace.model import Trace
from keylag.trace.otlp import ask, of_resource_spans, otel_id


def read(place: str, trace_id: str) -> Trace:
    """Read a trace from jaeger+http://host:16686."""
    url = place.removeprefix("jaeger+")
    found = ask(url, f"/api/v3/traces/{otel_id(trace_id)}")
    groups = found.get("result", {}).get("resourceSpans", ())
    return of_resource_spans(groups, trace_id, place)
