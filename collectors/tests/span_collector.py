"""The spans of a Keystone as plain values."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler

from keylag_otel import telemetry
from keylag_otel.traces import tracing
from keylag_otel.traces.sampler import ForcibleSampler

Span = dict[str, Any]


class Traces:
    """The spans of this process from now on."""

    def __init__(self, head: Sampler) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(ForcibleSampler(head))
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        tracing.use_provider(self.provider)
        telemetry.use_provider(None)

    def sent(self) -> str:
        """Return the spans since the last time as OTLP, undecoded."""
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import (
            encode_spans,
        )

        spans = self._exporter.get_finished_spans()
        return encode_spans(spans).SerializeToString().decode("latin-1")

    def taken(self) -> list[Span]:
        """Return the spans since the last time, in the order they began."""
        spans = [_plain(span) for span in self._exporter.get_finished_spans()]
        self._exporter.clear()
        return sorted(spans, key=lambda span: (span["start"], -span["end"]))


def _plain(span: Any) -> Span:
    return {
        "name": span.name,
        "kind": span.kind.name,
        "id": span.context.span_id,
        "trace": span.context.trace_id,
        "parent": span.parent.span_id if span.parent else None,
        "start": span.start_time,
        "end": span.end_time,
        "status": span.status.status_code.name,
        "attributes": dict(span.attributes),
    }


def cells(spans: list[Span]) -> dict[tuple[str, str], float]:
    """Return the seconds of each cell: each span's length without those below."""
    int_below: defaultdict[Any, int] = defaultdict(int)
    for span in spans:
        int_below[span["parent"]] += span["end"] - span["start"]
    found: defaultdict[tuple[str, str], int] = defaultdict(int)
    for span in spans:
        cell = tuple(span["attributes"][f"keystone.{of}"] for of in _CELL)
        found[cell] += span["end"] - span["start"] - int_below[span["id"]]
    return {cell: spent / 1e9 for cell, spent in found.items() if spent}


_CELL = ("phase", "operation")
