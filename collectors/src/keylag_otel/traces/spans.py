"""A request's calls as OpenTelemetry spans, made when the request is over."""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, Tracer

from keylag_otel.traces.describing import described
from keylag_otel.traces.events import Call


def send_inner(tracer: Tracer, context: Context, call: Call, epoch: int) -> None:
    """End a span for each call within a call; `context` has the span of the latter.

    ``epoch`` is the nanoseconds since 1970 at which ``perf_counter_ns`` was 0.
    """
    for inner in call.inner:
        span = _span_of(tracer, context, inner, epoch)
        send_inner(tracer, trace.set_span_in_context(span, context), inner, epoch)
        span.end(epoch + inner.ended)


def _span_of(tracer: Tracer, context: Context, call: Call, epoch: int) -> Span:
    """Return the span that began with a call, or a new one."""
    name, kind, attributes = described(call)
    if call.span is None:
        start = epoch + call.began
        return tracer.start_span(name, context, kind, attributes, start_time=start)
    span: Span = call.span
    span.set_attributes(attributes)
    return span
