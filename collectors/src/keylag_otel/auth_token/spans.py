"""Spans of authentication, for services that trace.

Without Keylag's own traces or a global provider there is no span, and nothing
is sent to Keystone that was not sent before.  Nothing of a token, a URL or an
exception's text goes into a span.
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

from keylag_otel.clock import current
from keylag_otel.instruments import METHOD, OPERATION, PHASE
from keylag_otel.traces import tracing
from keylag_otel.traces.epoch import epoch_ns
from keylag_otel.traces.events import SPAN
from keylag_otel.version import __version__
from keylag_otel.wrappers import Call, fault

_WAITING = {PHASE: "keystone", OPERATION: "auth_token"}


def tracer() -> Tracer | None:
    """Return Keylag's own tracer, else one of the deployer's provider, else None."""
    if tracing.Process.tracing is not None:
        return tracing.Process.tracing.tracer
    provider = trace.get_tracer_provider()
    if isinstance(provider, ProxyTracerProvider):
        return None
    return provider.get_tracer("keylag_otel", __version__)


def traced(process_request: Call) -> Call:
    """Put a span around auth_token, in the trace that the request came with."""

    @wraps(process_request)
    def watched(self: Any, request: Any) -> Any:
        with _around(request.headers):
            return process_request(self, request)

    return watched


def _around(headers: Mapping[str, str]) -> AbstractContextManager[Any]:
    """Return the span, below the service's own if that has one."""
    try:
        own = tracer()
        if own is None or tracing.Process.tracing is not None:
            # Keylag's own has a span of each step when the request is over.
            return nullcontext()
        known = trace.get_current_span().get_span_context().is_valid
        context = None if known else propagate.extract(headers)
        return own.start_as_current_span(
            "auth_token",
            context,
            record_exception=False,
            set_status_on_exception=False,
        )
    except Exception:
        fault(_around)
        return nullcontext()


def opened(call: Call) -> Call:
    """Begin a call's span with the call, where Keylag makes the spans.

    It is the current one meanwhile, so that what is sent to Keystone is below it.
    It ends with the others when the request is over.
    """

    @wraps(call)
    def watched(*args: Any, **kwargs: Any) -> Any:
        with _open(call):
            return call(*args, **kwargs)

    return watched


def _open(call: Call) -> AbstractContextManager[Any]:
    """Begin the span of the innermost call; nothing where no span is recorded."""
    try:
        clock, own = current(), tracing.Process.tracing
        if clock is None or own is None or not clock.writes or clock.is_full:
            return nullcontext()
        if not trace.get_current_span().is_recording():
            return nullcontext()
        entered = epoch_ns() + clock.mark
        span = own.tracer.start_span(call.__qualname__, start_time=entered)
        clock.note(SPAN, span)
        return trace.use_span(
            span, record_exception=False, set_status_on_exception=False
        )
    except Exception:
        fault(_open)
        return nullcontext()


def start_call(method: str, kwargs: dict[str, Any]) -> tuple[Span, dict[str, Any]]:
    """Start a span for one request to Keystone; return it, and `kwargs` with it.

    Without a provider it is a span that nobody sees, and `kwargs` are the same.
    """
    own = tracer()
    if own is None:
        return INVALID_SPAN, kwargs
    attributes = {METHOD: method, **_WAITING}
    span = own.start_span(method, kind=SpanKind.CLIENT, attributes=attributes)
    headers = dict(kwargs.get("headers") or {})
    propagate.inject(headers, trace.set_span_in_context(span))
    return span, {**kwargs, "headers": headers}
