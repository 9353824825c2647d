"""What a clock writes down of a request that is traced, and the tree it makes.

The events of a clock are one flat list, in the order in which they happened:

``(moment, cell, call)``
    a watched callable is entered, and its time goes to the cell;
``(moment, cell, None)``
    the innermost one is left, and time goes to the cell again;
``(name, value)``
    something was noted of the innermost one; without a name it is a tally.

Moments are nanoseconds of ``perf_counter_ns``.  What is noted is the text of a
statement without its parameters, or the number of a tally, whose attributes come
from closed sets: no key, id, token or argument is ever written down.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from keylag_otel.clock import START

_NOTE = ("name", "value")

#: The name of the note that has a call's span, where that began with the call.
SPAN = "span"


class Call:
    """A watched call, or several alike; times are nanoseconds.

    ``callee`` is what was called: None for the request itself, and for calls of
    several callables that were gathered; for a point of OSProfiler's, what it
    notified of its start.  ``inner`` are the calls that were made
    meanwhile; they do not overlap.
    """

    __slots__ = ("began", "callee", "cell", "ended", "inner", "notes", "times")

    def __init__(self, callee: Any, cell: int, began: int) -> None:
        self.callee = callee
        self.cell = cell
        self.began = began
        self.ended = began
        self.notes: list[tuple[str | None, Any]] = []
        self.inner: list[Call] = []
        self.times = 1

    @property
    def span(self) -> Any:
        """The span that began with it; None for most, whose spans are made later."""
        return next((value for name, value in self.notes if name == SPAN), None)

    @property
    def length(self) -> int:
        """How long it took, inner calls included."""
        return self.ended - self.began

    @property
    def own(self) -> int:
        """How long it took, inner calls left out."""
        return self.length - sum(call.length for call in self.inner)


def is_point(call: Call) -> bool:
    """Return whether this is a point of OSProfiler's, and none of Keylag's calls."""
    return isinstance(call.callee, dict)


def without_points(call: Call) -> Call:
    """Return the call with what is in points directly in it."""
    made = Call(call.callee, call.cell, call.began)
    made.ended, made.notes = call.ended, call.notes
    for inner in call.inner:
        own = without_points(inner)
        made.inner.extend(own.inner if is_point(inner) else [own])
    return made


def tree(events: Iterable[tuple[Any, ...]], began: int, wall: int) -> Call:
    """Return the request as a call, and in it all that it made.

    It is as long as its wall time, which leaves out the time in which a server
    was sending parts of an answer.  What was not left before the events end
    lasts as long as the request.
    """
    request = Call(None, START, began)
    running = [request]
    for event in events:
        if len(event) == len(_NOTE):
            running[-1].notes.append((event[0], event[1]))
        elif event[2] is not None:
            call = Call(event[2], event[1], event[0])
            running[-1].inner.append(call)
            running.append(call)
        else:
            _leave(running, event[0], event[1])
    for call in running:
        call.ended = max(began + wall, call.began)
    return request


def _leave(running: list[Call], moment: int, cell: int) -> None:
    """End the innermost call, and those around it that were abandoned."""
    while len(running) > 1:
        running.pop().ended = moment
        if running[-1].cell == cell:
            break
