"""Tempo: asked over its HTTP interface."""

from keylag.trace.model import Trace
from keylag.trace.otlp import ask, of_resource_spans, otel_id


def read(place: str, trace_id: str) -> Trace:
    """Read a trace from tempo+http://host:3200."""
    url = place.removeprefix("tempo+")
    found = ask(url, f"/api/traces/{otel_id(trace_id)}")
    # The protocol's word, and the one that Tempo had before.
    groups = found.get("resourceSpans") or found.get("batches") or ()
    return of_resource_spans(groups, trace_id, place)
