"""One call taken apart, whatever it was read from."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from keylag.phases import CATEGORIES, Cell, category_of
from keylag.trace.model import STATEMENT, Span, Trace
from keylag.trace.statements import StatementClass

MANY_JOINS: Final = 3
"""From so many on, one is as good as another."""

Key = TypeVar("Key", bound=Hashable)
Counted = tuple[int, float]
"""How many, and the seconds of all of them."""


@dataclass(frozen=True)
class Repeated:
    """All statements of one class in a call."""

    of: StatementClass
    count: int
    seconds: float
    """Of all of them."""
    slowest: float
    """Seconds; the mean of those that the trace has gathered in one span."""


@dataclass(frozen=True)
class CacheCalls:
    """Calls to one layer of the cache that ended alike."""

    layer: str
    result: str
    count: int
    seconds: float


@dataclass(frozen=True)
class Explanation:
    """One call; times in seconds."""

    call: str
    """Method and route."""
    source: str
    total_seconds: float
    cells: Mapping[Cell, float]
    """Self times, which add up to the total."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """sql_statements and cache_calls, where they are known."""
    statements: Sequence[Repeated] = ()
    """The class that took longest first."""
    classes: Mapping[str, StatementClass] = field(default_factory=dict)
    """Of the statements, by their text in the trace."""
    cache: Sequence[CacheCalls] = ()
    trace: Trace | None = None
    missing: Sequence[str] = ()
    """Sentences on what cannot be told, and how to see it."""
    totals: Mapping[str, float] = field(default_factory=dict)
    """Seconds of the same call by each who measured it, where several did."""

    @property
    def categories(self) -> dict[str, float]:
        """Seconds of the categories, all of them in their order."""
        return {**dict.fromkeys(CATEGORIES, 0.0), **self.summed(category_of)}

    def summed(self, part_of: Callable[[Cell], str]) -> dict[str, float]:
        """Return the seconds of each part of the cells, the largest first."""
        sums: dict[str, float] = defaultdict(float)
        for cell, seconds in self.cells.items():
            sums[part_of(cell)] += seconds
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    @property
    def sql(self) -> Counted:
        """All single statements that are known."""
        return next(iter(self._by(lambda _: "").values()), (0, 0.0))

    @property
    def kinds(self) -> dict[str, Counted]:
        """Statements by their first word."""
        return self._by(lambda one: one.kind)

    @property
    def joins(self) -> dict[int, Counted]:
        """Statements by how many tables they join to the first, up to MANY_JOINS."""
        return dict(sorted(self._by(lambda one: min(one.joins, MANY_JOINS)).items()))

    def _by(self, key: Callable[[StatementClass], Key]) -> dict[Key, Counted]:
        sums: dict[Key, Counted] = {}
        for one in self.statements:
            count, seconds = sums.get(key(one.of), (0, 0.0))
            sums[key(one.of)] = count + one.count, seconds + one.seconds
        return sums


def as_json(explanation: Explanation) -> dict[str, Any]:
    """Return it for programs; names as in breakdown.json, times in seconds."""
    found = explanation
    return {
        "call": found.call,
        "source": found.source,
        "trace_id": found.trace.id if found.trace else None,
        "wall_seconds": found.total_seconds,
        "categories": found.categories,
        "phases": found.summed(lambda cell: cell[0]),
        "operations": found.summed(lambda cell: cell[1]),
        "cells": found.summed(".".join),
        "totals": found.totals,
        **found.counts,
        "statements": [
            {
                "id": one.of.id,
                "fingerprint": one.of.fingerprint,
                "table_class": one.of.table_class,
                "joins": one.of.joins,
                "count": one.count,
                "seconds": one.seconds,
                "slowest_seconds": one.slowest,
            }
            for one in found.statements
        ],
        "cache": [vars(one) for one in found.cache],
        "missing": list(found.missing),
        "spans": [
            _span(found, one) for one in (found.trace.spans if found.trace else ())
        ],
    }


def _span(found: Explanation, span: Span) -> dict[str, Any]:
    """Return a span; its statement is told by its class, which has no values."""
    attributes = dict(span.attributes)
    if text := attributes.pop(STATEMENT, None):
        attributes["statement"] = found.classes[text].id
    return {
        "name": span.name,
        "start_seconds": span.start,
        "seconds": span.seconds,
        "cell": ".".join(span.cell),
        "attributes": attributes,
        "children": [_span(found, child) for child in span.children],
    }
