"""The recorded events of a request, and the tree of calls that they make.

The events of a request timer are a flat list in chronological order:

``(moment, cell, call)``
    enter a wrapped callable and switch to the cell;
``(moment, cell, None)``
    leave the innermost callable and switch back to the cell;
``(name, value)``
    annotate the innermost call; without a name, the value is a counter id.

Moments are nanoseconds of ``perf_counter_ns``.  Annotations are texts of statements
without parameters, and counter ids, whose attributes are closed sets: keys, ids,
tokens and arguments are never recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from keylag_otel.request_timer import INITIAL_CELL

_ANNOTATION = ("name", "value")

#: The annotation with the span of a call, if the span was started with the call.
SPAN_ANNOTATION = "span"


class TracedCall:
    """A wrapped call, or several collapsed ones; times are nanoseconds.

    ``callee`` is the callable, or None for the request and for collapsed calls of
    different callables.  For a point of OSProfiler it is the start notification.
    ``children`` are the calls within it; they do not overlap.
    """

    __slots__ = (
        "annotations",
        "callee",
        "cell",
        "children",
        "count",
        "ended_at",
        "started_at",
    )

    def __init__(self, callee: Any, cell: int, started_at: int) -> None:
        self.callee = callee
        self.cell = cell
        self.started_at = started_at
        self.ended_at = started_at
        self.annotations: list[tuple[str | None, Any]] = []
        self.children: list[TracedCall] = []
        self.count = 1

    @property
    def span(self) -> Any:
        """The span that was started with the call; None if it is made later."""
        return next(
            (value for name, value in self.annotations if name == SPAN_ANNOTATION), None
        )

    @property
    def duration(self) -> int:
        """Duration in nanoseconds, children included."""
        return self.ended_at - self.started_at

    @property
    def self_time(self) -> int:
        """Duration in nanoseconds without children."""
        return self.duration - sum(call.duration for call in self.children)


def is_osprofiler_point(call: TracedCall) -> bool:
    """Return whether this is a point of OSProfiler, not a call of Keylag."""
    return isinstance(call.callee, dict)


def remove_osprofiler_points(call: TracedCall) -> TracedCall:
    """Return a copy without points; their children move up."""
    copy = TracedCall(call.callee, call.cell, call.started_at)
    copy.ended_at, copy.annotations = call.ended_at, call.annotations
    for child in call.children:
        inner = remove_osprofiler_points(child)
        copy.children.extend(inner.children if is_osprofiler_point(child) else [inner])
    return copy


def build_tree(
    events: Iterable[tuple[Any, ...]], started_at: int, wall: int
) -> TracedCall:
    """Return the request as a call with its children.

    Its duration is its wall time, without the time of sending a streamed response.
    Calls without an end event last as long as the request.
    """
    request = TracedCall(None, INITIAL_CELL, started_at)
    open_calls = [request]
    for event in events:
        if len(event) == len(_ANNOTATION):
            open_calls[-1].annotations.append((event[0], event[1]))
        elif event[2] is not None:
            call = TracedCall(event[2], event[1], event[0])
            open_calls[-1].children.append(call)
            open_calls.append(call)
        else:
            _end_innermost(open_calls, event[0], event[1])
    for call in open_calls:
        call.ended_at = max(started_at + wall, call.started_at)
    return request


def _end_innermost(open_calls: list[TracedCall], moment: int, cell: int) -> None:
    """End the innermost call, and abandoned calls around it."""
    while len(open_calls) > 1:
        open_calls.pop().ended_at = moment
        if open_calls[-1].cell == cell:
            break
