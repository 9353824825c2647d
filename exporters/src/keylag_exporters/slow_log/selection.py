"""Selects the classes that are exported as series of their own."""

from __future__ import annotations

import heapq
from operator import add, sub
from typing import TYPE_CHECKING, Any

from keylag_exporters.slow_log.sql_comment import Tag
from keylag_exporters.slow_log.statement_classes import (
    COUNTER_FIELDS,
    Aggregate,
    ClassKey,
    CounterValues,
    StatementClass,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

SWAP_FACTOR = 2
"""A class displaces a selected one only with SWAP_FACTOR times its query time."""


class ClassSelection:
    """Selects up to `max_classes` classes by query time; the rest is one sum.

    The counters of a class that was part of the rest start at zero when it is selected,
    and the rest keeps what it has counted. What a class has counted until it is
    deselected is in no series any more. So no counter decreases or jumps.
    """

    def __init__(self, max_classes: int) -> None:
        self.max_classes = max_classes
        self._baselines: dict[ClassKey, Aggregate] = {}
        self._unselected: set[ClassKey] = set()
        self._retired: CounterValues = (0,) * len(COUNTER_FIELDS)

    def select(
        self, classes: Mapping[ClassKey, StatementClass], total: Aggregate
    ) -> tuple[list[tuple[StatementClass, CounterValues]], CounterValues]:
        """Return the selected classes with their counters, and those of the rest."""
        self._baselines = {
            key: baseline for key, baseline in self._baselines.items() if key in classes
        }
        largest = heapq.nlargest(
            self.max_classes,
            classes.values(),
            key=lambda statement_class: statement_class.aggregate.query_time_us,
        )
        for statement_class in largest:
            if statement_class.key not in self._baselines and self._make_room(
                statement_class, classes
            ):
                was_unselected = statement_class.key in self._unselected
                self._baselines[statement_class.key] = (
                    statement_class.aggregate.copy() if was_unselected else Aggregate()
                )
        self._unselected = set(classes) - set(self._baselines)
        return self._split(classes, total)

    def _make_room(
        self, candidate: StatementClass, classes: Mapping[ClassKey, StatementClass]
    ) -> bool:
        """Return whether a class may be selected; deselect a much smaller one."""
        if len(self._baselines) < self.max_classes:
            return True
        smallest = min(
            self._baselines, key=lambda key: classes[key].aggregate.query_time_us
        )
        smallest_time = classes[smallest].aggregate.query_time_us
        if candidate.aggregate.query_time_us <= SWAP_FACTOR * smallest_time:
            return False
        counted = _increase(classes[smallest], self._baselines.pop(smallest))
        self._retired = tuple(map(add, self._retired, counted))
        return True

    def _split(
        self, classes: Mapping[ClassKey, StatementClass], total: Aggregate
    ) -> tuple[list[tuple[StatementClass, CounterValues]], CounterValues]:
        """Return the counters of each selected class since its baseline, and rest."""
        rest = _subtract(total.counter_values(), self._retired)
        selected = []
        for key, baseline in self._baselines.items():
            increase = _increase(classes[key], baseline)
            rest = _subtract(rest, increase)
            selected.append((classes[key], increase))
        return selected, rest

    def as_dict(self) -> dict[str, Any]:
        """Return the saved state, as JSON types."""
        baselines = [
            [id_, list(tag), baseline.as_dict()]
            for (id_, tag), baseline in self._baselines.items()
        ]
        return {"baselines": baselines, "retired": list(self._retired)}

    def restore(
        self,
        saved: dict[str, Any] | list[Any],
        classes: Mapping[ClassKey, StatementClass],
    ) -> None:
        """Continue with the series of a saved state."""
        if isinstance(saved, list):  # by a version that retired nothing
            saved = {"baselines": saved, "retired": self._retired}
        self._baselines = {
            (id_, Tag(*tag)): Aggregate(**baseline)
            for id_, tag, baseline in saved["baselines"]
        }
        self._retired = tuple(saved["retired"])
        self._unselected = set(classes) - set(self._baselines)


def _increase(statement_class: StatementClass, baseline: Aggregate) -> CounterValues:
    """Return what a class has counted since its baseline."""
    now = statement_class.aggregate.counter_values()
    return _subtract(now, baseline.counter_values())


def _subtract(values: CounterValues, subtrahend: CounterValues) -> CounterValues:
    return tuple(map(sub, values, subtrahend))
