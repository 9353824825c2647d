"""The breakdown of one call, from any source."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from keylag.phases import CATEGORIES, Cell, category_of
from keylag.trace.model import STATEMENT, Span, Trace
from keylag.trace.statements import StatementClass

MANY_JOINS: Final = 3
"""Statements with this many joins or more count together."""

Key = TypeVar("Key", bound=Hashable)
CountAndSeconds = tuple[int, float]
"""A count, and the total seconds."""


@dataclass(frozen=True)
class StatementSummary:
    """All statements of one class in a call; times in seconds."""

    statement_class: StatementClass
    count: int
    seconds: float
    """Total time."""
    slowest_seconds: float
    """The slowest statement; for a collapsed span, the mean of its statements."""


@dataclass(frozen=True)
class CacheCalls:
    """Calls to one cache layer with the same result; total time in seconds."""

    layer: str
    result: str
    count: int
    seconds: float


@dataclass(frozen=True)
class Explanation:
    """The breakdown of one call; times in seconds."""

    call: str
    """Method and route."""
    source: str
    total_seconds: float
    cells: Mapping[Cell, float]
    """Self times; they add up to the total."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """sql_statements and cache_calls, if known."""
    statements: Sequence[StatementSummary] = ()
    """Summaries by total time, the longest first."""
    classes: Mapping[str, StatementClass] = field(default_factory=dict)
    """Statement classes by the text of a statement in the trace."""
    cache: Sequence[CacheCalls] = ()
    trace: Trace | None = None
    limitations: Sequence[str] = ()
    """Sentences on what the source lacks, and how to see it."""
    totals_by_source: Mapping[str, float] = field(default_factory=dict)
    """Seconds of the same call by source, if several measured it."""

    @property
    def categories(self) -> dict[str, float]:
        """Seconds of all categories, in display order."""
        return {**dict.fromkeys(CATEGORIES, 0.0), **self.sum_cells(category_of)}

    def sum_cells(self, part_of: Callable[[Cell], str]) -> dict[str, float]:
        """Return the seconds of groups of cells, the largest first."""
        sums: dict[str, float] = defaultdict(float)
        for cell, seconds in self.cells.items():
            sums[part_of(cell)] += seconds
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    @property
    def sql(self) -> CountAndSeconds:
        """Count and seconds of all known statements."""
        return next(iter(self._by(lambda _: "").values()), (0, 0.0))

    @property
    def kinds(self) -> dict[str, CountAndSeconds]:
        """Count and seconds of statements by their first word."""
        return self._by(lambda one: one.kind)

    @property
    def joins(self) -> dict[int, CountAndSeconds]:
        """Count and seconds of statements by number of joins, up to MANY_JOINS."""
        return dict(sorted(self._by(lambda one: min(one.joins, MANY_JOINS)).items()))

    def _by(self, key: Callable[[StatementClass], Key]) -> dict[Key, CountAndSeconds]:
        sums: dict[Key, CountAndSeconds] = {}
        for one in self.statements:
            count, seconds = sums.get(key(one.statement_class), (0, 0.0))
            sums[key(one.statement_class)] = count + one.count, seconds + one.seconds
        return sums


def as_json(explanation: Explanation) -> dict[str, Any]:
    """Return a JSON document; names as in breakdown.json, times in seconds."""
    return {
        "call": explanation.call,
        "source": explanation.source,
        "trace_id": explanation.trace.id if explanation.trace else None,
        "wall_seconds": explanation.total_seconds,
        "categories": explanation.categories,
        "phases": explanation.sum_cells(lambda cell: cell[0]),
        "operations": explanation.sum_cells(lambda cell: cell[1]),
        "cells": explanation.sum_cells(".".join),
        "totals": explanation.totals_by_source,
        **explanation.counts,
        "statements": [
            {
                "id": one.statement_class.id,
                "statement": one.statement_class.statement,
                "fingerprint": one.statement_class.fingerprint,
                "table_class": one.statement_class.table_class,
                "joins": one.statement_class.joins,
                "count": one.count,
                "seconds": one.seconds,
                "slowest_seconds": one.slowest_seconds,
            }
            for one in explanation.statements
        ],
        "cache": [vars(one) for one in explanation.cache],
        "missing": list(explanation.limitations),
        "spans": [
            _span_json(explanation, one)
            for one in (explanation.trace.spans if explanation.trace else ())
        ],
    }


def _span_json(explanation: Explanation, span: Span) -> dict[str, Any]:
    # The id of the statement class replaces the text, which may contain values.
    attributes = dict(span.attributes)
    if text := attributes.pop(STATEMENT, None):
        attributes["statement"] = explanation.classes[text].id
    return {
        "name": span.name,
        "start_seconds": span.start,
        "seconds": span.seconds,
        "cell": ".".join(span.cell),
        "attributes": attributes,
        "children": [_span_json(explanation, child) for child in span.children],
    }
