"""The trace model that all sources are read into: a tree of spans.

Sources produce `RawSpan`s, and `build_trace` builds the tree.  Attributes that are not
in `ATTRIBUTE_NAMES` are dropped, so parameters, ids and other private data never appear
in the output.
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
TRUNCATED: Final = "keystone.trace.cut"

ATTRIBUTE_NAMES: Final[Mapping[str, str]] = {
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
"""Attribute names of the sources, and the names used here."""
OWN_PREFIX: Final = "keystone."
"""Prefix of keylag-otel's attributes; their values come from closed sets."""

_ID: Final = re.compile(r"(?<=/)(?![{<])(?:[^/]*\d[^/]*\d[^/]*|[^/]{32,})")
"""A path segment that looks like an id; excludes route templates."""
_OTHER: Final = "other"
_NANOSECOND: Final = 1e-9


class TraceError(KeylagError):
    """A trace cannot be read or explained, or a call failed."""


class TraceNotFoundError(TraceError):
    """The location is readable, but does not have the trace."""


@dataclass(frozen=True, slots=True)
class RawSpan:
    """A span of a source; times in nanoseconds since an arbitrary origin."""

    id: str
    parent: str
    name: str
    start: int
    end: int
    attributes: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Span:
    """A span of the call; times in seconds since the start of the trace."""

    name: str
    start: float
    end: float
    cell: Cell
    attributes: Mapping[str, str]
    children: tuple["Span", ...] = ()

    @property
    def seconds(self) -> float:
        """Duration, including its children."""
        return self.end - self.start

    @property
    def calls(self) -> int:
        """Number of calls; a collapsed span stands for several."""
        return int(self.attributes.get(CALLS, 1))

    @property
    def self_seconds(self) -> float:
        """Time in which none of its children ran."""
        return self.seconds - _child_seconds(self)


@dataclass(frozen=True, slots=True)
class Trace:
    """All recorded spans of one call."""

    id: str
    source: str
    """Its location, for display."""
    spans: tuple[Span, ...] = field(repr=False)
    """Root spans by start time; at least one."""


def build_trace(raw_spans: Iterable[RawSpan], trace_id: str, source: str) -> Trace:
    """Build the tree; a span with an unknown parent becomes a root.

    Raises TraceNotFoundError if there are no spans.
    """
    by_id = {raw_span.id: raw_span for raw_span in raw_spans}
    if not by_id:
        message = f"There is no trace {trace_id} in {source}."
        raise TraceNotFoundError(message)
    origin = min(raw_span.start for raw_span in by_id.values())
    children: dict[str, list[RawSpan]] = defaultdict(list)
    for raw_span in sorted(by_id.values(), key=attrgetter("start")):
        children[raw_span.parent if raw_span.parent in by_id else ""].append(raw_span)

    def span(raw_span: RawSpan) -> Span:
        attributes = filter_attributes(raw_span.attributes)
        below = tuple(span(child) for child in children[raw_span.id])
        start = (raw_span.start - origin) * _NANOSECOND
        end = (max(raw_span.end, raw_span.start) - origin) * _NANOSECOND
        return Span(raw_span.name, start, end, _cell(attributes), attributes, below)

    return Trace(trace_id, source, tuple(span(root) for root in children[""]))


def filter_attributes(attributes: Mapping[str, object]) -> dict[str, str]:
    """Return the attributes that may be displayed, by their names here."""
    kept = {
        ATTRIBUTE_NAMES.get(name, name): str(value)
        for name, value in attributes.items()
        if name in ATTRIBUTE_NAMES or name.startswith(OWN_PREFIX)
    }
    if ROUTE in kept:
        kept[ROUTE] = _ID.sub("{id}", kept[ROUTE])
    return kept


def _cell(attributes: Mapping[str, str]) -> Cell:
    phase = "sql" if STATEMENT in attributes else _OTHER
    return attributes.get(PHASE, phase), attributes.get(OPERATION, _OTHER)


def _child_seconds(span: Span) -> float:
    # Overlapping children count once.
    total, reached = 0.0, span.start
    for child in span.children:
        start, end = max(child.start, reached), min(child.end, span.end)
        total += max(0.0, end - start)
        reached = max(reached, end)
    return total
