"""Span collapsing: similar calls become one span with their number.

- Leaf calls without annotations, as those of SQLAlchemy around a statement, become one
  span per cell of a parent.
- Calls of the same callable with the same annotations, as a statement that is repeated
  for each role, become one span if a parent has more than ``REPEAT_LIMIT`` of them; or
  more than one, if the trace exceeds ``SPAN_LIMIT``.

The duration of a collapsed span is the sum of its calls.  Spans that it would overlap
are moved behind it, so that self times still add up to the metrics of the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from keylag_otel.traces.events import TracedCall, is_osprofiler_point

#: More calls of a kind than this below one parent are collapsed.
REPEAT_LIMIT = 10

#: Above this number of spans, all repetitions are collapsed.
SPAN_LIMIT = 400


def collapse(request: TracedCall) -> TracedCall:
    """Return a copy of the request with similar calls collapsed."""
    for repeated in (REPEAT_LIMIT, 1):
        collapsed = _collapse_repeated(request, repeated)
        if sum(1 for _ in walk(collapsed)) <= SPAN_LIMIT:
            break
    return _lay_out(collapsed, collapsed.started_at)


def walk(call: TracedCall) -> Iterator[TracedCall]:
    """Yield a call and all of its descendants, parents first."""
    yield call
    for child in call.children:
        yield from walk(child)


def _collapse_repeated(call: TracedCall, repeated: int) -> TracedCall:
    alike: dict[Any, list[TracedCall]] = {}
    for child in call.children:
        alike.setdefault(_group_key(child), []).append(child)
    merged = _copy(call)
    for calls in alike.values():
        limit = 1 if _is_plain_leaf(calls[0]) else repeated
        found = [_merge(calls)] if len(calls) > limit else calls
        merged.children.extend(_collapse_repeated(child, repeated) for child in found)
    merged.children.sort(key=lambda child: child.started_at)
    return merged


def _is_plain_leaf(call: TracedCall) -> bool:
    return not (call.children or call.annotations or is_osprofiler_point(call))


def _group_key(call: TracedCall) -> Any:
    if is_osprofiler_point(call):
        return id(call)
    if _is_plain_leaf(call):
        return call.cell
    return call.cell, call.callee, tuple(call.annotations)


def _merge(calls: list[TracedCall]) -> TracedCall:
    merged = _copy(calls[0])
    if any(call.callee is not merged.callee for call in calls):
        merged.callee = None
    merged.ended_at = merged.started_at + sum(call.duration for call in calls)
    merged.count = sum(call.count for call in calls)
    merged.children = [child for call in calls for child in call.children]
    return merged


def _copy(call: TracedCall) -> TracedCall:
    merged = TracedCall(call.callee, call.cell, call.started_at)
    merged.ended_at, merged.annotations, merged.count = (
        call.ended_at,
        call.annotations,
        call.count,
    )
    return merged


def _lay_out(call: TracedCall, started_at: int) -> TracedCall:
    """Move a call to a start time, and its children one after the other within it."""
    moved = started_at - call.started_at
    call.started_at, call.ended_at = started_at, call.ended_at + moved
    free, remaining = started_at, _total(call.children)
    for child in call.children:
        duration = child.duration
        free = max(free, min(child.started_at + moved, call.ended_at - remaining))
        _lay_out(child, free)
        free += duration
        remaining -= duration
    return call


def _total(calls: Iterable[TracedCall]) -> int:
    return sum(call.duration for call in calls)
