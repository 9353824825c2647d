"""Few enough spans: calls that are alike become one that says how many it was.

- Calls that made no others and have nothing to tell of their own, as those of
  SQLAlchemy around a statement, are one span for each cell of a parent.
- Calls of the same callable with the same notes, as a statement that is repeated
  for each role, are one span where there are more than ``REPEATED`` of them
  under one parent; where the trace is still too large, where there are two.

A span of several calls is as long as they were together.  What it would overlap
is moved behind it, so that a span's own time is still its length without the
spans below it, and a trace adds up to what the metrics say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from keylag_otel.traces.events import Call, is_point

#: More than that many of the same under one parent are one span.
REPEATED = 10

#: Spans of one trace, above which any repetition is one span.
LIMIT = 400


def gathered(request: Call) -> Call:
    """Return the request with calls gathered until it is small enough."""
    for repeated in (REPEATED, 1):
        small = _gathered(request, repeated)
        if sum(1 for _ in walk(small)) <= LIMIT:
            break
    return _laid_out(small, small.began)


def walk(call: Call) -> Iterator[Call]:
    """Yield a call and all below it, each before those below it."""
    yield call
    for inner in call.inner:
        yield from walk(inner)


def _gathered(call: Call, repeated: int) -> Call:
    alike: dict[Any, list[Call]] = {}
    for inner in call.inner:
        alike.setdefault(_likeness(inner), []).append(inner)
    made = _copy(call)
    for calls in alike.values():
        limit = 1 if _is_plain(calls[0]) else repeated
        found = [_one(calls)] if len(calls) > limit else calls
        made.inner.extend(_gathered(inner, repeated) for inner in found)
    made.inner.sort(key=lambda inner: inner.began)
    return made


def _is_plain(call: Call) -> bool:
    return not (call.inner or call.notes or is_point(call))


def _likeness(call: Call) -> Any:
    if is_point(call):
        return id(call)
    if _is_plain(call):
        return call.cell
    return call.cell, call.callee, tuple(call.notes)


def _one(calls: list[Call]) -> Call:
    made = _copy(calls[0])
    if any(call.callee is not made.callee for call in calls):
        made.callee = None
    made.ended = made.began + sum(call.length for call in calls)
    made.times = sum(call.times for call in calls)
    made.inner = [inner for call in calls for inner in call.inner]
    return made


def _copy(call: Call) -> Call:
    made = Call(call.callee, call.cell, call.began)
    made.ended, made.notes, made.times = call.ended, call.notes, call.times
    return made


def _laid_out(call: Call, began: int) -> Call:
    """Let a call begin then, and the calls in it one after the other within it."""
    moved = began - call.began
    call.began, call.ended = began, call.ended + moved
    free, left = began, _total(call.inner)
    for inner in call.inner:
        length = inner.length
        free = max(free, min(inner.began + moved, call.ended - left))
        _laid_out(inner, free)
        free += length
        left -= length
    return call


def _total(calls: Iterable[Call]) -> int:
    return sum(call.length for call in calls)
