"""What this process's requests have added up to.

A request adds some forty integers here.  Metrics are read from the ledger
by asynchronous instruments, once per export, so that a request does not pay
for an SDK call per cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from threading import Lock
from typing import Any, Callable, NamedTuple

from keylag_otel import instruments
from keylag_otel.clock import COUNTS, Clock, Totals
from keylag_otel.instruments import DURATION_BUCKETS
from keylag_otel.model import CELLS
from keylag_otel.tally import attributes_of, tally

Record = Callable[[float, "dict[str, Any]"], None]

NS_PER_SECOND = 1e9
_BOUNDS = tuple(round(bound * NS_PER_SECOND) for bound in DURATION_BUCKETS)
_METHODS = frozenset(
    {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"}
)
_PLACEHOLDER = re.compile(r"<(?:[^:<>]*:)?([^<>]+)>")


class Row(NamedTuple):
    """What the requests that share one set of attributes add up to."""

    attributes: dict[str, Any]
    totals: Totals


@lru_cache(maxsize=1024)
def route_template(rule: str) -> str:
    """Turn Flask's ``/users/<string:user_id>`` into ``/users/{user_id}``."""
    return _PLACEHOLDER.sub(r"{\1}", rule)


def known_method(method: str) -> str:
    """Return the method, or `_OTHER`: a client may send any text as one."""
    return method if method in _METHODS else "_OTHER"


class Ledger:
    """Totals by method, route, status and authentication method.

    All four come from closed sets, so the ledger stops growing once each has
    been seen.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(
        self, record: Record | None = None, exemplify: Record | None = None
    ) -> None:
        """Start from nothing, as a new process does.

        ``record`` takes each request's wall seconds and attributes, ``exemplify``
        those of the traced ones; equal attributes are the same dictionary.
        """
        self._rows: dict[tuple[Any, ...], Row] = {}
        self._tallies: dict[int, int] = {}
        self._lock = Lock()
        self._record = record
        self._exemplify = exemplify

    def add(self, method: str, status: int, clock: Clock) -> None:
        """Add a finished request."""
        key = (method, clock.route, status, clock.auth_method)
        with self._lock:
            row = self._rows.get(key)
            if row is None:
                totals = Totals(_BOUNDS, len(COUNTS))
                row = self._rows[key] = Row(request_attributes(*key), totals)
            row.totals.add(clock)
            clock.add_tallies_to(self._tallies)
        if self._record is not None:
            self._record(clock.wall_ns / NS_PER_SECOND, row.attributes)
        if clock.kept and self._exemplify is not None:
            self._exemplify(clock.wall_ns / NS_PER_SECOND, row.attributes)

    def rows(self) -> list[Row]:
        """Return what there is now."""
        with self._lock:
            return [Row(a, totals.copy()) for a, totals in self._rows.values()]

    def phase_seconds(self) -> Iterator[tuple[float, dict[str, Any]]]:
        """Yield the seconds of every cell with its attributes."""
        for attributes, totals in self.rows():
            for cell, nanoseconds in totals.spent().items():
                phase, operation = CELLS[cell]
                yield (
                    nanoseconds / NS_PER_SECOND,
                    {
                        **attributes,
                        instruments.PHASE: phase,
                        instruments.OPERATION: operation,
                    },
                )

    def count(self, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield one of the counts of ``COUNTS`` with its attributes."""
        index = COUNTS.index(name)
        for attributes, totals in self.rows():
            yield totals.counts[index], attributes

    def tallied(self, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield one of ``instruments.TALLIES`` with its attributes."""
        with self._lock:
            tallies = dict(self._tallies)
        for number, count in tallies.items():
            instrument, attributes = attributes_of(number)
            if instrument == name:
                yield count, attributes

    def fault(self, seam: str) -> None:
        """Count an exception of our own, which nobody else will hear of."""
        with self._lock:
            number = tally("faults", seam)
            self._tallies[number] = self._tallies.get(number, 0) + 1


def request_attributes(
    method: str, route: str | None, status: int, auth_method: str | None
) -> dict[str, Any]:
    """Return what requests are told apart by."""
    attributes: dict[str, Any] = {
        instruments.METHOD: known_method(method),
        instruments.STATUS: status,
    }
    if route is not None:
        attributes[instruments.ROUTE] = route_template(route)
    if auth_method is not None:
        attributes[instruments.AUTH_METHOD] = auth_method
    return attributes


LEDGER = Ledger()
