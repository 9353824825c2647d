"""Spans of auth_token in services that trace.

Without Keylag's own tracer or a global provider there are no spans, and requests to
Keystone stay unchanged.  Spans contain no tokens, URLs or exception messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.trace import (
    INVALID_SPAN,
    ProxyTracerProvider,
    Span,
    SpanKind,
    Tracer,
)

from keylag_otel.instruments import METHOD, OPERATION, PHASE
from keylag_otel.request_timer import current_timer
from keylag_otel.traces import tracing
from keylag_otel.traces.events import SPAN_ANNOTATION
from keylag_otel.traces.wall_clock import perf_counter_epoch_ns
from keylag_otel.version import __version__
from keylag_otel.wrappers import Call, count_fault

_WAITING = {PHASE: "keystone", OPERATION: "auth_token"}


def tracer() -> Tracer | None:
    """Return Keylag's own tracer, else one of the global provider, else None."""
    if tracing.State.tracing is not None:
        return tracing.State.tracing.tracer
    provider = trace.get_tracer_provider()
    if isinstance(provider, ProxyTracerProvider):
        return None
    return provider.get_tracer("keylag_otel", __version__)


def wrap_process_request(process_request: Call) -> Call:
    """Wrap ``process_request`` to put a span around it, in the trace of the caller."""

    @wraps(process_request)
    def wrapper(self: Any, request: Any) -> Any:
        with _request_span(request.headers):
            return process_request(self, request)

    return wrapper


def _request_span(headers: Mapping[str, str]) -> AbstractContextManager[Any]:
    """Return a current span, below the one of the service if there is one."""
    try:
        own = tracer()
        if own is None or tracing.State.tracing is not None:
            # Keylag's own tracer makes a span of each step at the end of the request.
            return nullcontext()
        has_parent = trace.get_current_span().get_span_context().is_valid
        context = None if has_parent else propagate.extract(headers)
        return own.start_as_current_span(
            "auth_token",
            context,
            record_exception=False,
            set_status_on_exception=False,
        )
    except Exception:
        count_fault(_request_span)
        return nullcontext()


def open_span(call: Call) -> Call:
    """Wrap a call to start its span with the call, if Keylag traces the request.

    The span is current during the call, as the parent of requests to Keystone.  It
    ends with the others at the end of the request.
    """

    @wraps(call)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with _start_span(call):
            return call(*args, **kwargs)

    return wrapper


def _start_span(call: Call) -> AbstractContextManager[Any]:
    """Start the span of the innermost call, if the request is traced."""
    try:
        timer, own = current_timer(), tracing.State.tracing
        if (
            timer is None
            or own is None
            or not timer.records_events
            or timer.event_limit_reached
        ):
            return nullcontext()
        if not trace.get_current_span().is_recording():
            return nullcontext()
        entered = perf_counter_epoch_ns() + timer.last_tick
        span = own.tracer.start_span(call.__qualname__, start_time=entered)
        timer.annotate(SPAN_ANNOTATION, span)
        return trace.use_span(
            span, record_exception=False, set_status_on_exception=False
        )
    except Exception:
        count_fault(_start_span)
        return nullcontext()


def start_call_span(method: str, kwargs: dict[str, Any]) -> tuple[Span, dict[str, Any]]:
    """Start a span of a request to Keystone; return it, and `kwargs` with its headers.

    Without a provider the span is invalid, and `kwargs` are unchanged.
    """
    own = tracer()
    if own is None:
        return INVALID_SPAN, kwargs
    attributes = {METHOD: method, **_WAITING}
    span = own.start_span(method, kind=SpanKind.CLIENT, attributes=attributes)
    headers = dict(kwargs.get("headers") or {})
    propagate.inject(headers, trace.set_span_in_context(span))
    return span, {**kwargs, "headers": headers}
