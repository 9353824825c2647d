"""OSProfiler points: those of Keystone, and those that Keylag adds.

With OSProfiler, Keystone notifies a driver of the start and stop of each request and
SQL statement.  Keylag holds these notifications until the end of the request and
sends them in one tree with points for cache, revocation check, password hashes, token
crypto and all other calls that it measures.  So no point includes the time of sending
another.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import wraps
from typing import Any
from uuid import UUID, uuid4

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from keylag_otel import instruments
from keylag_otel.model import CELLS, NS_PER_SECOND
from keylag_otel.request_timer import RequestTimer, current_timer
from keylag_otel.traces.collapse_spans import collapse, walk
from keylag_otel.traces.events import TracedCall, is_osprofiler_point
from keylag_otel.traces.span_attributes import call_attributes
from keylag_otel.wrappers import Call, count_fault

Point = dict[str, Any]

#: The annotation with the stop notification of a point.
_STOP_ANNOTATION = "osprofiler-stop"

#: The name of Keylag's point of the whole request; OSProfiler's own is "wsgi".
_REQUEST = "request"

_SHORT_ID = (1 << 64) - 1


class State:
    """Whether this process also exports spans."""

    #: If so, OSProfiler's OTLP driver gets no points: it would use the current time
    #: as the time of a point.
    exports_spans = False


def force_trace(timer: RequestTimer, args: tuple[Any, ...], profiler: Any) -> None:
    """Record the events of a request from where OSProfiler traces it."""
    del args, profiler
    timer.records_events = timer.is_traced = True


def hold_points(notify: Call) -> Call:
    """Wrap OSProfiler's `notify` to hold notifications until the end of the request."""

    @wraps(notify)
    def wrapper(info: Point) -> Any:
        timer = current_timer()
        try:
            if timer is not None and timer.records_events and _hold(timer, info):
                return None
        except Exception:
            count_fault(notify)
        return notify(info)

    return wrapper


def _hold(timer: RequestTimer, info: Point) -> bool:
    """Record a notification; return False if it has to be sent at once."""
    if timer.event_limit_reached or (_is_otlp() and not State.exports_spans):
        return False
    if info["name"].endswith("-start"):
        timer.switch(timer.current_cell, info)
    else:
        timer.annotate(_STOP_ANNOTATION, info)
        timer.switch(timer.current_cell)
    return True


def parent_context(request: TracedCall) -> Context | None:
    """Return the parent span that OSProfiler's OTLP driver would give a request.

    None if OSProfiler does not trace the request, or if its ids are not UUIDs.
    """
    first = _first_point(request)
    if first is None:
        return None
    try:
        ids = UUID(first["base_id"]).int, UUID(first["parent_id"]).int & _SHORT_ID
    except ValueError:
        return None
    sampled = TraceFlags(TraceFlags.SAMPLED)
    parent = SpanContext(*ids, is_remote=True, trace_flags=sampled)
    return trace.set_span_in_context(NonRecordingSpan(parent), Context())


def send_points(request: TracedCall, epoch: int) -> None:
    """Send the points of a request that OSProfiler traces, in chronological order.

    ``epoch`` is the Unix time in nanoseconds at which ``perf_counter_ns`` was 0.
    """
    first = _first_point(request)
    if first is None or _is_otlp():
        return
    from osprofiler import notifier  # noqa: PLC0415 - optional

    for point in _PointBuilder(epoch).of_request(collapse(request), first):
        notifier.notify(point)


def _first_point(request: TracedCall) -> Point | None:
    return next(
        (call.callee for call in walk(request) if is_osprofiler_point(call)), None
    )


def _is_otlp() -> bool:
    from osprofiler import notifier  # noqa: PLC0415 - optional

    driver = getattr(notifier.get(), "__self__", None)
    name = getattr(driver, "get_name", None)
    return name is not None and name() == "otlp"


class _PointBuilder:
    """Makes the notifications of one request."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._host = socket.gethostname()

    def of_request(self, request: TracedCall, first: Point) -> Iterator[Point]:
        """Yield the notifications of a request; `first` is its first point.

        Keylag's point of the request surrounds OSProfiler's own, whose middleware is
        inside of others.
        """
        root = {"base_id": first["base_id"], "trace_id": first["parent_id"]}
        return self._keylag_point(_REQUEST, request, root)

    def _child_points(self, call: TracedCall, parent: Point) -> Iterator[Point]:
        for child in call.children:
            if is_osprofiler_point(child):
                yield from self._keystone_point(child, parent)
            else:
                yield from self._keylag_point(_name(child, call), child, parent)

    def _keystone_point(self, call: TracedCall, parent: Point) -> Iterator[Point]:
        """Yield a point of Keystone below its parent of Keylag.

        Calls within a statement are left out: the point of the statement has them.
        """
        start = call.callee
        info, phase, inner = start["info"], CELLS[call.cell][0], call
        if "db" in info:
            phase, inner = "sql", TracedCall(None, 0, 0)
        attributes = {instruments.PHASE: phase, instruments.OPERATION: _operation(call)}
        parent = {"parent_id": parent["trace_id"]}
        details = {"info": {**info, **attributes}}
        yield {**start, **parent, **self._timestamp(call.started_at), **details}
        yield from self._child_points(inner, start)
        for name, stop in call.annotations:
            if name == _STOP_ANNOTATION:
                yield {**stop, **parent, **self._timestamp(call.ended_at)}

    def _keylag_point(
        self, name: str, call: TracedCall, parent: Point
    ) -> Iterator[Point]:
        ids = {
            "base_id": parent["base_id"],
            "trace_id": str(uuid4()),
            "parent_id": parent["trace_id"],
        }
        host = {"host": self._host}
        info = {**host, **call_attributes(call)}
        yield {
            "name": f"{name}-start",
            **ids,
            **self._timestamp(call.started_at),
            "info": info,
        }
        yield from self._child_points(call, ids)
        yield {
            "name": f"{name}-stop",
            **ids,
            **self._timestamp(call.ended_at),
            "info": host,
        }

    def _timestamp(self, moment: int) -> Point:
        seconds = (self._epoch + moment) / NS_PER_SECOND
        utc = datetime.fromtimestamp(seconds, timezone.utc)
        return {"timestamp": utc.strftime("%Y-%m-%dT%H:%M:%S.%f")}


def _operation(call: TracedCall) -> str:
    return CELLS[call.cell][1]


def _name(call: TracedCall, outside: TracedCall) -> str:
    """Return the operation that a call starts, else its phase.

    OSProfiler aggregates points by name, up to the first hyphen.
    """
    phase, operation = CELLS[call.cell]
    return phase if operation == _operation(outside) else operation
