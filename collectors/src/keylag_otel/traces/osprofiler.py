"""OSProfiler's points: Keystone's own, and those that only Keylag knows of.

Where OSProfiler traces a request, Keystone makes a point of the request and of
each SQL statement, and hands two notifications of each to a driver at once.  Here
they are held back until the request is over, and then sent by the same notifier,
in one tree with the cache, the revocation check, password hashes, token crypto
and whatever else Keylag watches.  So no point's time holds the sending of another.
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
from keylag_otel.clock import Clock, current
from keylag_otel.model import CELLS
from keylag_otel.traces.describing import attributes_of_call
from keylag_otel.traces.events import Call, is_point
from keylag_otel.traces.gathering import gathered, walk
from keylag_otel.wrappers import Call as Callee
from keylag_otel.wrappers import fault

Point = dict[str, Any]

#: The name of the note that has the notification of a point's end.
_STOP = "osprofiler-stop"

#: What the point of the whole request is called; OSProfiler's own is "wsgi".
_REQUEST = "request"

_SHORT_ID = (1 << 64) - 1
_NS_PER_SECOND = 1e9


class Process:
    """What else this process does with what OSProfiler traces."""

    #: OpenTelemetry spans are made of it, which is what OSProfiler's OTLP driver
    #: is for: it takes the current time for a point's, whenever it gets it.
    makes_spans = False


def note_traced(clock: Clock, args: tuple[Any, ...], profiler: Any) -> None:
    """Let the clock write down a request that OSProfiler traces from here on."""
    del args, profiler
    clock.writes = clock.kept = True


def held_back(notify: Callee) -> Callee:
    """Keep a notification for the end of the request, where it is part of one."""

    @wraps(notify)
    def watched(info: Point) -> Any:
        clock = current()
        try:
            if clock is not None and clock.writes and _holds(clock, info):
                return None
        except Exception:
            fault(notify)
        return notify(info)

    return watched


def _holds(clock: Clock, info: Point) -> bool:
    """Write a notification down; False if it has to be sent at once."""
    if clock.is_full or (_is_otlp() and not Process.makes_spans):
        return False
    if info["name"].endswith("-start"):
        clock.turn(clock.at, info)
    else:
        clock.note(_STOP, info)
        clock.turn(clock.at)
    return True


def parent_of(request: Call) -> Context | None:
    """Return the span that OSProfiler's OTLP driver would put a request below.

    None if OSProfiler does not trace the request, or under ids of another form.
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


def send(request: Call, epoch: int) -> None:
    """Send the points of a request that OSProfiler traces, in their order.

    ``epoch`` is the nanoseconds since 1970 at which ``perf_counter_ns`` was 0.
    """
    first = _first_point(request)
    if first is None or _is_otlp():
        return
    from osprofiler import notifier  # noqa: PLC0415 - only where it traces

    for point in _Points(epoch).of_request(gathered(request), first):
        notifier.notify(point)


def _first_point(request: Call) -> Point | None:
    return next((call.callee for call in walk(request) if is_point(call)), None)


def _is_otlp() -> bool:
    from osprofiler import notifier  # noqa: PLC0415 - only where it traces

    driver = getattr(notifier.get(), "__self__", None)
    name = getattr(driver, "get_name", None)
    return name is not None and name() == "otlp"


class _Points:
    """Makes the notifications of one request."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._host = socket.gethostname()

    def of_request(self, request: Call, first: Point) -> Iterator[Point]:
        """Yield the notifications of a request and of all in it, `first` the first.

        OSProfiler's middleware is within others of Keystone's, which its own points
        leave out; so the request is a point of ours, around them.
        """
        asker = {"base_id": first["base_id"], "trace_id": first["parent_id"]}
        return self._ours(_REQUEST, request, asker)

    def _within(self, call: Call, above: Point) -> Iterator[Point]:
        """Yield the notifications of the calls in a call; `above` has its ids."""
        for inner in call.inner:
            if is_point(inner):
                yield from self._theirs(inner, above)
            else:
                yield from self._ours(_name(inner, call), inner, above)

    def _theirs(self, call: Call, above: Point) -> Iterator[Point]:
        """Yield a point of Keystone's, in the one of ours that it was made in.

        What Keylag watched while a statement was executed is that statement.
        """
        start = call.callee
        info, phase, inner = start["info"], CELLS[call.cell][0], call
        if "db" in info:
            phase, inner = "sql", Call(None, 0, 0)
        place = {instruments.PHASE: phase, instruments.OPERATION: _operation(call)}
        parent = {"parent_id": above["trace_id"]}
        told = {"info": {**info, **place}}
        yield {**start, **parent, **self._at(call.began), **told}
        yield from self._within(inner, start)
        for name, stop in call.notes:
            if name == _STOP:
                yield {**stop, **parent, **self._at(call.ended)}

    def _ours(self, name: str, call: Call, above: Point) -> Iterator[Point]:
        ids = {
            "base_id": above["base_id"],
            "trace_id": str(uuid4()),
            "parent_id": above["trace_id"],
        }
        host = {"host": self._host}
        info = {**host, **attributes_of_call(call)}
        yield {"name": f"{name}-start", **ids, **self._at(call.began), "info": info}
        yield from self._within(call, ids)
        yield {"name": f"{name}-stop", **ids, **self._at(call.ended), "info": host}

    def _at(self, moment: int) -> Point:
        seconds = (self._epoch + moment) / _NS_PER_SECOND
        utc = datetime.fromtimestamp(seconds, timezone.utc)
        return {"timestamp": utc.strftime("%Y-%m-%dT%H:%M:%S.%f")}


def _operation(call: Call) -> str:
    return CELLS[call.cell][1]


def _name(call: Call, outside: Call) -> str:
    """Return the operation that a call begins, else its phase.

    OSProfiler adds up the points of a name; it cuts one at its first hyphen.
    """
    phase, operation = CELLS[call.cell]
    return phase if operation == _operation(outside) else operation
