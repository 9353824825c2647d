"""A trace as everything here knows it: a tree of spans.

Each source's reader makes nodes, `grown` makes the tree.  What of a source's
attributes is not in `KEPT` is dropped on reading, so that parameters, ids and
whatever else a tracer wrote down are never shown.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from keylag.errors import KeylagError
from keylag.phases import Cell

STATEMENT: Final = "db.query.text"
METHOD: Final = "http.request.method"
ROUTE: Final = "http.route"
ERROR: Final = "error.type"
FUNCTION: Final = "code.function.name"
SERVICE: Final = "service.name"
PHASE: Final = "keystone.phase"
OPERATION: Final = "keystone.operation"
CACHE_LAYER: Final = "keystone.cache.layer"
CACHE_RESULT: Final = "keystone.cache.result"
CALLS: Final = "keystone.calls"
CUT: Final = "keystone.trace.cut"

KEPT: Final[Mapping[str, str]] = {
    STATEMENT: STATEMENT,
    "db.statement": STATEMENT,
    METHOD: METHOD,
    "http.method": METHOD,
    "request.method": METHOD,
    ROUTE: ROUTE,
    "request.path": ROUTE,
    SERVICE: SERVICE,
    FUNCTION: FUNCTION,
    ERROR: ERROR,
    "etype": ERROR,
}
"""What the sources call an attribute, and what it is called here."""
OWN_PREFIX: Final = "keystone."
"""The attributes of keylag-otel, whose values are from closed sets."""

_ID: Final = re.compile(r"(?<=/)(?![{<])(?:[^/]*\d[^/]*\d[^/]*|[^/]{32,})")
"""A part of a path that is no word of Keystone's, nor of a template."""
_UNKNOWN: Final = "other"
_SECONDS: Final = 1e-9


class TraceError(KeylagError):
    """There is no trace to show; the text says why and what to do."""


class NoTraceError(TraceError):
    """The place can be read, and the trace is not there."""


@dataclass(frozen=True, slots=True)
class Node:
    """A span as a source has it, times in nanoseconds since any moment."""

    id: str
    parent: str
    name: str
    start: int
    end: int
    attributes: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Span:
    """A step of the call; times in seconds since the trace began."""

    name: str
    start: float
    end: float
    cell: Cell
    attributes: Mapping[str, str]
    children: tuple["Span", ...] = ()

    @property
    def seconds(self) -> float:
        """How long it took, its children included."""
        return self.end - self.start

    @property
    def calls(self) -> int:
        """How many calls it stands for: a tracer may gather those that are alike."""
        return int(self.attributes.get(CALLS, 1))

    @property
    def self_seconds(self) -> float:
        """The part of it in which none of its children ran."""
        return self.seconds - _covered(self)


@dataclass(frozen=True, slots=True)
class Trace:
    """What was kept of one call."""

    id: str
    source: str
    """Where it was read, in words."""
    spans: tuple[Span, ...] = field(repr=False)
    """The roots, in the order they began; at least one."""


def grown(nodes: Iterable[Node], trace_id: str, source: str) -> Trace:
    """Make the tree; a node whose parent is not there is a root.

    Raises NoTraceError without any node.
    """
    by_id = {node.id: node for node in nodes}
    if not by_id:
        message = f"There is no trace {trace_id} in {source}."
        raise NoTraceError(message)
    zero = min(node.start for node in by_id.values())
    children: dict[str, list[Node]] = defaultdict(list)
    for node in sorted(by_id.values(), key=attrgetter("start")):
        children[node.parent if node.parent in by_id else ""].append(node)

    def span(node: Node) -> Span:
        attributes = kept(node.attributes)
        below = tuple(span(child) for child in children[node.id])
        start = (node.start - zero) * _SECONDS
        end = (max(node.end, node.start) - zero) * _SECONDS
        return Span(node.name, start, end, _cell(attributes), attributes, below)

    return Trace(trace_id, source, tuple(span(root) for root in children[""]))


def kept(attributes: Mapping[str, object]) -> dict[str, str]:
    """Return what may be shown, by the names it has here."""
    found = {
        KEPT.get(name, name): str(value)
        for name, value in attributes.items()
        if name in KEPT or name.startswith(OWN_PREFIX)
    }
    if ROUTE in found:
        found[ROUTE] = _ID.sub("{id}", found[ROUTE])
    return found


def _cell(attributes: Mapping[str, str]) -> Cell:
    phase = "sql" if STATEMENT in attributes else _UNKNOWN
    return attributes.get(PHASE, phase), attributes.get(OPERATION, _UNKNOWN)


def _covered(span: Span) -> float:
    """Return how long any of a span's children ran; those side by side count once."""
    total, reached = 0.0, span.start
    for child in span.children:
        begun, done = max(child.start, reached), min(child.end, span.end)
        total += max(0.0, done - begun)
        reached = max(reached, done)
    return total
