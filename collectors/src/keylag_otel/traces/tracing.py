"""A request's trace from its head to its end, in this process.

Nothing is written down unless a request is to be traced; spans are made when it
is over, of what its clock has written down until then.
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
from keylag_otel.clock import START, Clock
from keylag_otel.ledger import request_attributes
from keylag_otel.model import CELLS
from keylag_otel.pure.sums import key_of
from keylag_otel.traces import attributes as names
from keylag_otel.traces import osprofiler, provider
from keylag_otel.traces.epoch import epoch_ns
from keylag_otel.traces.events import Call, tree, without_points
from keylag_otel.traces.gathering import gathered
from keylag_otel.traces.keeping import keep
from keylag_otel.traces.spans import send_inner
from keylag_otel.version import __version__
from keylag_otel.wrappers import fault

_SERVER_ERROR = 500


class Head:
    """What is known of a request that may be traced; times are nanoseconds.

    ``epoch`` is when, since 1970, ``perf_counter_ns`` was 0.
    """

    __slots__ = ("began", "epoch", "parent", "span")

    def __init__(self, clock: Clock, parent: Context | None = None) -> None:
        self.began = clock.began
        self.epoch = epoch_ns()
        self.parent = Context() if parent is None else parent
        self.span: Span = INVALID_SPAN


class Tracing:
    """Traces the requests of this process.

    ``slow`` is from how many seconds on each request is, None for never.  ``share``
    is how much of those that begin a trace is; None if the sampler has to be asked.
    """

    def __init__(
        self, tracer: Tracer, slow: float | None = None, share: float | None = None
    ) -> None:
        self.tracer = tracer
        self._share = share
        fields = propagate.get_global_textmap().fields
        self._headers = frozenset(_key(field) for field in fields)
        self._slow_ns = None if slow is None else slow * 1e9

    def begin(self, clock: Clock) -> Head | None:
        """Ask the sampler, and let the clock write down what may be wanted.

        Few callers name a span, so OpenTelemetry is not asked for it each time.
        Nothing is made of a request that is left out before that.
        """
        clock.writes = self._slow_ns is not None
        here = contexts.get_current()
        if not self._headers.isdisjoint(clock.environ):
            if not _is_valid(here):
                here = propagate.extract(clock.environ, here, _HEADERS)
        elif not here and self._share is not None:
            if random() >= self._share:  # noqa: S311 - no secret
                return None
            here = keep(here)
        head = Head(clock, here)
        head.span = self._start(head, head.parent, clock.method)
        clock.kept = head.span.is_recording()
        clock.writes = clock.writes or clock.kept
        return head

    def is_slow(self, clock: Clock) -> bool:
        """Return whether a request took so long that it is traced for it."""
        return self._slow_ns is not None and clock.wall_ns >= self._slow_ns

    def span_of(self, head: Head, request: Call, clock: Clock) -> tuple[Span, Context]:
        """Return the span of a request that is over, and what its spans start in.

        It is not recording if the request is not to be traced.
        """
        asked = osprofiler.parent_of(request)
        if asked is not None and not _is_valid(head.parent):
            return self._kept(head, asked, clock.method)
        if self.is_slow(clock) and not head.span.is_recording():
            return self._kept(head, head.parent, clock.method)
        return head.span, head.parent

    def send(self, span: Span, context: Context, call: Call, epoch: int) -> None:
        """End the spans of all calls in a request."""
        inside = trace.set_span_in_context(span, context)
        send_inner(self.tracer, inside, gathered(without_points(call)), epoch)

    def _kept(self, head: Head, parent: Context, method: str) -> tuple[Span, Context]:
        context = keep(parent)
        return self._start(head, context, method), context

    def _start(self, head: Head, parent: Context, method: str) -> Span:
        return self.tracer.start_span(
            method,
            parent,
            SpanKind.SERVER,
            {instruments.METHOD: method},
            start_time=head.epoch + head.began,
        )


class Process:
    """How this process traces; None while it does not."""

    tracing: Tracing | None = None
    given: TracerProvider | None = None


def use(given: TracerProvider | None) -> None:
    """Use this provider in every process; its sampler alone decides what is kept."""
    Process.given = given


def start() -> None:
    """Start this process's traces, if any are wanted."""
    chosen = Process.given or provider.build()
    osprofiler.Process.makes_spans = chosen is not None
    Process.tracing = None
    if chosen is not None:
        tracer = chosen.get_tracer("keylag_otel", __version__)
        share = None if Process.given else environment.traced_share()
        Process.tracing = Tracing(tracer, environment.trace_slow_seconds(), share)


def begin(clock: Clock) -> Head | None:
    """Begin a request's trace; None where nothing is traced, or this is left out."""
    try:
        return Process.tracing.begin(clock) if Process.tracing else None
    except Exception:
        fault(begin)
        return None


def entered(head: Head) -> Token[Context] | None:
    """Make a request's span the current one, so that what it calls is below it."""
    if not head.span.is_recording():
        return None
    return contexts.attach(trace.set_span_in_context(head.span, head.parent))


def left(token: Token[Context]) -> None:
    """Make that the current one which was."""
    contexts.detach(token)


def is_wanted(clock: Clock) -> bool:
    """Return whether what a clock has written down is to be sent."""
    tracing = Process.tracing
    return clock.kept or (tracing is not None and tracing.is_slow(clock))


@contextmanager
def finished(head: Head | None, clock: Clock, status: int) -> Iterator[None]:
    """Send what a clock has written down, now that the request is over.

    Its span is the current one meanwhile, so that metrics can refer to it.
    """
    context = Context()
    try:
        clock.kept = True
        context = _send(head or Head(clock), clock, status)
    except Exception:
        fault(finished)
    token = contexts.attach(context)
    try:
        yield
    finally:
        contexts.detach(token)


def _send(head: Head, clock: Clock, status: int) -> Context:
    request = tree(clock.events, head.began, clock.wall_ns)
    osprofiler.send(request, head.epoch)
    if Process.tracing is None:
        return Context()
    span, context = Process.tracing.span_of(head, request, clock)
    if span.is_recording():
        _describe(span, clock, status)
        Process.tracing.send(span, context, request, head.epoch)
        span.end(head.epoch + request.ended)
    return trace.set_span_in_context(span)


def _describe(span: Span, clock: Clock, status: int) -> None:
    """Give the span of a request its name and attributes."""
    found = request_attributes(*key_of(clock, status))
    phase, operation = CELLS[START]
    found |= {instruments.PHASE: phase, instruments.OPERATION: operation}
    if instruments.ROUTE in found:
        span.update_name(f"{found[instruments.METHOD]} {found[instruments.ROUTE]}")
    if status >= _SERVER_ERROR:
        found[instruments.ERROR_TYPE] = str(status)
        span.set_status(StatusCode.ERROR)
    if clock.is_full:
        found[names.CUT] = True
    span.set_attributes(found)


def _is_valid(context: Context) -> bool:
    return trace.get_current_span(context).get_span_context().is_valid


def _key(header: str) -> str:
    """Return what a header is called in a WSGI environment."""
    return f"HTTP_{header.upper().replace('-', '_')}"


class _Headers(Getter["dict[str, Any]"]):
    """Finds a header in a WSGI environment."""

    def get(self, carrier: dict[str, Any], key: str) -> list[str] | None:
        value = carrier.get(_key(key))
        return None if value is None else [value]

    def keys(self, carrier: dict[str, Any]) -> list[str]:
        return list(carrier)


_HEADERS = _Headers()
