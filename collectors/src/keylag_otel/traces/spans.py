"""OpenTelemetry spans of the calls of a finished request."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, Tracer

from keylag_otel.traces.events import TracedCall
from keylag_otel.traces.span_attributes import describe_span


def end_child_spans(
    tracer: Tracer, context: Context, call: TracedCall, epoch: int
) -> None:
    """Start and end the spans of all descendants of a call.

    `context` has the span of the call; ``epoch`` is the Unix time in nanoseconds at
    which ``perf_counter_ns`` was 0.
    """
    for child in call.children:
        span = _span_of(tracer, context, child, epoch)
        end_child_spans(tracer, trace.set_span_in_context(span, context), child, epoch)
        span.end(epoch + child.ended_at)


def _span_of(tracer: Tracer, context: Context, call: TracedCall, epoch: int) -> Span:
    name, kind, attributes = describe_span(call)
    if call.span is None:
        start = epoch + call.started_at
        return tracer.start_span(name, context, kind, attributes, start_time=start)
    span: Span = call.span
    span.set_attributes(attributes)
    return span
