"""Traces of the requests of this process.

The timer records events only for requests that may be traced.  Spans are made from
the events when the request is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Token
from random import random
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter
from opentelemetry.trace import (
    INVALID_SPAN,
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    TracerProvider,
)

from keylag_otel import environment, instruments
from keylag_otel.model import CELLS, NS_PER_SECOND
from keylag_otel.pure.aggregator import request_key
from keylag_otel.request_aggregator import request_attributes
from keylag_otel.request_timer import INITIAL_CELL, RequestTimer
from keylag_otel.traces import attribute_keys, osprofiler, tracer_provider
from keylag_otel.traces.collapse_spans import collapse
from keylag_otel.traces.events import TracedCall, build_tree, remove_osprofiler_points
from keylag_otel.traces.forced_sampling import force_sampling
from keylag_otel.traces.spans import end_child_spans
from keylag_otel.traces.wall_clock import perf_counter_epoch_ns
from keylag_otel.version import __version__
from keylag_otel.wrappers import count_fault

_SERVER_ERROR = 500


class PendingTrace:
    """A request that may be traced; times are nanoseconds.

    ``epoch`` is the Unix time at which ``perf_counter_ns`` was 0.
    """

    __slots__ = ("epoch", "parent", "span", "started_at")

    def __init__(self, timer: RequestTimer, parent: Context | None = None) -> None:
        self.started_at = timer.started_at
        self.epoch = perf_counter_epoch_ns()
        self.parent = Context() if parent is None else parent
        self.span: Span = INVALID_SPAN


class RequestTracer:
    """Traces the requests of this process.

    Requests of at least ``slow_seconds`` are always traced, unless it is None.
    ``ratio`` is that of root spans to sample; if None, the sampler decides.
    """

    def __init__(
        self,
        tracer: Tracer,
        slow_seconds: float | None = None,
        ratio: float | None = None,
    ) -> None:
        self.tracer = tracer
        self._ratio = ratio
        fields = propagate.get_global_textmap().fields
        self._trace_headers = frozenset(_environ_key(field) for field in fields)
        self._slow_ns = None if slow_seconds is None else slow_seconds * NS_PER_SECOND

    def begin_trace(self, timer: RequestTimer) -> PendingTrace | None:
        """Decide whether to trace a request, and whether to record its events.

        Requests without a trace header are sampled here by ratio, because a call of
        the SDK's sampler costs more.
        """
        timer.records_events = self._slow_ns is not None
        here = contexts.get_current()
        if not self._trace_headers.isdisjoint(timer.environ):
            if not _is_valid(here):
                here = propagate.extract(timer.environ, here, _HEADERS)
        elif not here and self._ratio is not None:
            if random() >= self._ratio:  # noqa: S311 - no secret
                return None
            here = force_sampling(here)
        pending = PendingTrace(timer, here)
        pending.span = self._start(pending, pending.parent, timer.method)
        timer.is_traced = pending.span.is_recording()
        timer.records_events = timer.records_events or timer.is_traced
        return pending

    def is_slow(self, timer: RequestTimer) -> bool:
        """Return whether the request is slow enough to be traced."""
        return self._slow_ns is not None and timer.wall_ns >= self._slow_ns

    def span_of(
        self, pending: PendingTrace, request: TracedCall, timer: RequestTimer
    ) -> tuple[Span, Context]:
        """Return the span of a finished request, and its parent context.

        The span is not recording if the request is not traced.
        """
        requested = osprofiler.parent_context(request)
        if requested is not None and not _is_valid(pending.parent):
            return self._start_forced(pending, requested, timer.method)
        if self.is_slow(timer) and not pending.span.is_recording():
            return self._start_forced(pending, pending.parent, timer.method)
        return pending.span, pending.parent

    def send(self, span: Span, context: Context, call: TracedCall, epoch: int) -> None:
        """End the spans of all calls of a request."""
        inside = trace.set_span_in_context(span, context)
        end_child_spans(
            self.tracer, inside, collapse(remove_osprofiler_points(call)), epoch
        )

    def _start_forced(
        self, pending: PendingTrace, parent: Context, method: str
    ) -> tuple[Span, Context]:
        context = force_sampling(parent)
        return self._start(pending, context, method), context

    def _start(self, pending: PendingTrace, parent: Context, method: str) -> Span:
        return self.tracer.start_span(
            method,
            parent,
            SpanKind.SERVER,
            {instruments.METHOD: method},
            start_time=pending.epoch + pending.started_at,
        )


class State:
    """The tracer of this process; None while it traces nothing."""

    tracing: RequestTracer | None = None
    given: TracerProvider | None = None


def use_provider(given: TracerProvider | None) -> None:
    """Use this provider in all processes; its sampler decides alone."""
    State.given = given


def start() -> None:
    """Start tracing in this process, if a provider is given or configured."""
    chosen = State.given or tracer_provider.build()
    osprofiler.State.exports_spans = chosen is not None
    State.tracing = None
    if chosen is not None:
        tracer = chosen.get_tracer("keylag_otel", __version__)
        ratio = None if State.given else environment.sampling_ratio()
        State.tracing = RequestTracer(tracer, environment.trace_slow_seconds(), ratio)


def begin_trace(timer: RequestTimer) -> PendingTrace | None:
    """Begin the trace of a request; return None if it is not sampled.

    A slow request, or one that OSProfiler traces, is still traced at its end.
    """
    try:
        return State.tracing.begin_trace(timer) if State.tracing else None
    except Exception:
        count_fault(begin_trace)
        return None


def attach_span(pending: PendingTrace) -> Token[Context] | None:
    """Make the span of a request current, as the parent of its calls."""
    if not pending.span.is_recording():
        return None
    return contexts.attach(trace.set_span_in_context(pending.span, pending.parent))


def detach_span(token: Token[Context]) -> None:
    """Restore the span that was current before."""
    contexts.detach(token)


def should_send(timer: RequestTimer) -> bool:
    """Return whether to send the recorded events of a request."""
    tracing = State.tracing
    return timer.is_traced or (tracing is not None and tracing.is_slow(timer))


@contextmanager
def finish_trace(
    pending: PendingTrace | None, timer: RequestTimer, status: int
) -> Iterator[None]:
    """Send the trace of a finished request.

    In the body, the span of the request is current, so that it can be an exemplar.
    """
    context = Context()
    try:
        timer.is_traced = True
        context = _send(pending or PendingTrace(timer), timer, status)
    except Exception:
        count_fault(finish_trace)
    token = contexts.attach(context)
    try:
        yield
    finally:
        contexts.detach(token)


def _send(pending: PendingTrace, timer: RequestTimer, status: int) -> Context:
    request = build_tree(timer.events, pending.started_at, timer.wall_ns)
    osprofiler.send_points(request, pending.epoch)
    if State.tracing is None:
        return Context()
    span, context = State.tracing.span_of(pending, request, timer)
    if span.is_recording():
        _describe(span, timer, status)
        State.tracing.send(span, context, request, pending.epoch)
        span.end(pending.epoch + request.ended_at)
    return trace.set_span_in_context(span)


def _describe(span: Span, timer: RequestTimer, status: int) -> None:
    found = request_attributes(*request_key(timer, status))
    phase, operation = CELLS[INITIAL_CELL]
    found |= {instruments.PHASE: phase, instruments.OPERATION: operation}
    if instruments.ROUTE in found:
        span.update_name(f"{found[instruments.METHOD]} {found[instruments.ROUTE]}")
    if status >= _SERVER_ERROR:
        found[instruments.ERROR_TYPE] = str(status)
        span.set_status(StatusCode.ERROR)
    if timer.event_limit_reached:
        found[attribute_keys.CUT] = True
    span.set_attributes(found)


def _is_valid(context: Context) -> bool:
    return trace.get_current_span(context).get_span_context().is_valid


def _environ_key(header: str) -> str:
    """Return the key of a header in a WSGI environment."""
    return f"HTTP_{header.upper().replace('-', '_')}"


class _Headers(Getter["dict[str, Any]"]):
    """Gets a header from a WSGI environment."""

    def get(self, carrier: dict[str, Any], key: str) -> list[str] | None:
        value = carrier.get(_environ_key(key))
        return None if value is None else [value]

    def keys(self, carrier: dict[str, Any]) -> list[str]:
        return list(carrier)


_HEADERS = _Headers()
