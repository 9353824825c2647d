"""Which classes are exported by themselves: few, stable, and never stepping back."""

from __future__ import annotations

import heapq
from operator import sub
from typing import TYPE_CHECKING, Any

from keylag_exporters.slow_log.classes import Key, StatementClass, Sums, Totals
from keylag_exporters.slow_log.comment import Tag

if TYPE_CHECKING:
    from collections.abc import Mapping

SWAP_FACTOR = 2
"""A newcomer takes a place only with so many times the time of who had it."""


class Selection:
    """Chooses up to `most` classes by query time; sums the rest as one.

    A class that was part of the rest before it got its own series starts there at
    zero: what the rest has counted stays with the rest. So no counter steps back.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._start: dict[Key, Totals] = {}
        self._was_rest: set[Key] = set()

    def choose(
        self, classes: Mapping[Key, StatementClass], total: Totals
    ) -> tuple[list[tuple[StatementClass, Sums]], Sums]:
        """Return the chosen classes with their sums, and the sums of the rest."""
        self._start = {key: at for key, at in self._start.items() if key in classes}
        best = heapq.nlargest(
            self.most, classes.values(), key=lambda one: one.totals.query_time_us
        )
        for one in best:
            if one.key not in self._start and self._has_place(one, classes):
                known = one.key in self._was_rest
                self._start[one.key] = one.totals.copy() if known else Totals()
        self._was_rest = set(classes) - set(self._start)
        return self._split(classes, total)

    def _has_place(
        self, newcomer: StatementClass, classes: Mapping[Key, StatementClass]
    ) -> bool:
        """Tell whether there is a place; make one if somebody takes far less time."""
        if len(self._start) < self.most:
            return True
        weakest = min(self._start, key=lambda key: classes[key].totals.query_time_us)
        least = classes[weakest].totals.query_time_us
        if newcomer.totals.query_time_us <= SWAP_FACTOR * least:
            return False
        del self._start[weakest]
        return True

    def _split(
        self, classes: Mapping[Key, StatementClass], total: Totals
    ) -> tuple[list[tuple[StatementClass, Sums]], Sums]:
        """Return each chosen class since it was chosen, and what that leaves."""
        rest = total.numbers()
        chosen = []
        for key, start in self._start.items():
            since = _differences(classes[key].totals.numbers(), start.numbers())
            rest = _differences(rest, since)
            chosen.append((classes[key], since))
        return chosen, rest

    def as_dict(self) -> list[Any]:
        """Return what a restart needs to go on with the same series."""
        return [
            [id_, list(tag), at.as_dict()] for (id_, tag), at in self._start.items()
        ]

    def restore(self, saved: list[Any], classes: Mapping[Key, StatementClass]) -> None:
        """Go on with the series that `as_dict` described."""
        self._start = {(id_, Tag(*tag)): Totals(**at) for id_, tag, at in saved}
        self._was_rest = set(classes) - set(self._start)


def _differences(sums: Sums, less: Sums) -> Sums:
    """Return sums less other sums."""
    return tuple(map(sub, sums, less))
