"""What this process's requests have added up to.

A request adds some forty integers here.  Metrics are read from the ledger
by asynchronous instruments, once per export, so that a request does not pay
for an SDK call per cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, Callable, NamedTuple

from keylag_otel import instruments
from keylag_otel.clock import COUNTS, Clock, Sums, Totals
from keylag_otel.instruments import DURATION_BUCKETS
from keylag_otel.model import CELLS
from keylag_otel.pure.sums import Key, key_of
from keylag_otel.tally import attributes_of, tally

Record = Callable[[float, "dict[str, Any]"], None]

#: Rows that a ledger keeps, some 2.5 kB each.  Keystone has some 400 pairs of a
#: method and a route that can be accepted; what is beyond the limit is one row more.
LIMIT = 1000
_OVERFLOW: Key = ("", None, 0, None)

#: Whose refusals are told apart by route.
_TOKENS = "/v3/auth/tokens"

NS_PER_SECOND = 1e9
_BOUNDS = tuple(round(bound * NS_PER_SECOND) for bound in DURATION_BUCKETS)
_PLACEHOLDER = re.compile(r"<(?:[^:<>]*:)?([^<>]+)>")


class Row(NamedTuple):
    """What the requests that share one set of attributes add up to."""

    attributes: dict[str, Any]
    totals: Totals


@lru_cache(maxsize=1024)
def route_template(rule: str) -> str:
    """Turn Flask's ``/users/<string:user_id>`` into ``/users/{user_id}``."""
    return _PLACEHOLDER.sub(r"{\1}", rule)


class Ledger(Sums):
    """Totals by method, route, status and authentication method.

    All four come from closed sets, but a client may try every method on every route
    without being let in.  So a refusal has a route only where a token was asked for
    or about, and of what Keystone accepts there are never more rows than ``LIMIT``.
    """

    def __init__(self) -> None:
        super().__init__(_BOUNDS, len(COUNTS))
        self.reset()

    def reset(
        self, record: Record | None = None, exemplify: Record | None = None
    ) -> None:
        """Start from nothing, as a new process does.

        ``record`` takes each request's wall seconds and attributes, ``exemplify``
        those of the traced ones; equal attributes are the same dictionary.
        """
        self.clear()
        self._attributes: dict[Key, dict[str, Any]] = {}
        self._exemplify = exemplify
        self.recorded = None if record is None else partial(self._tell, record)

    def add(self, clock: Clock, status: int) -> None:
        """Add a finished request, under a key that no client can multiply."""
        if 400 <= status < 500 or clock.method == "OPTIONS":  # noqa: PLR2004
            _forget_route(clock)
        key = clock.method, clock.route, status, clock.auth_method
        if key not in self._attributes:
            status = self._admitted(clock, status)
        Sums.add(self, clock, status)

    def _admitted(self, clock: Clock, status: int) -> int:
        """Make place for a new key; beyond the limit, let the clock have the last."""
        if len(self._attributes) >= LIMIT:
            clock.method, clock.route, status, clock.auth_method = _OVERFLOW
        self._attributes_of(key_of(clock, status))
        return status

    def exemplify(self, clock: Clock, status: int) -> None:
        """Let the current span be an example of a request that was added."""
        key = key_of(clock, status)
        if self._exemplify is not None and key in self._attributes:
            self._tell(self._exemplify, clock, key)

    def _tell(self, record: Record, clock: Clock, key: Key) -> None:
        record(clock.wall_ns / NS_PER_SECOND, self._attributes_of(key))

    def _attributes_of(self, key: Key) -> dict[str, Any]:
        known = self._attributes.get(key)
        if known is None:
            known = self._attributes.setdefault(key, request_attributes(*key))
        return known

    def rows(self) -> list[Row]:
        """Return what there is now."""
        found = self.by_key().items()
        return [Row(self._attributes_of(key), totals) for key, totals in found]

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
        for number, count in self.tallies.items():
            instrument, attributes = attributes_of(number)
            if instrument == name:
                yield count, attributes

    def fault(self, seam: str) -> None:
        """Count an exception of our own, which nobody else will hear of."""
        self.tally(tally("faults", seam))


def _forget_route(clock: Clock) -> None:
    """Forget the route of what was not let in, unless it is about a token."""
    if clock.method == "OPTIONS" or not (clock.route == _TOKENS or clock.auth_method):
        clock.route = None


def request_attributes(
    method: str, route: str | None, status: int, auth_method: str | None
) -> dict[str, Any]:
    """Return what requests are told apart by."""
    if not method:
        return {instruments.OVERFLOW: True}
    attributes: dict[str, Any] = {
        instruments.METHOD: method,
        instruments.STATUS: status,
    }
    if route is not None:
        attributes[instruments.ROUTE] = route_template(route)
    if auth_method is not None:
        attributes[instruments.AUTH_METHOD] = auth_method
    return attributes


LEDGER = Ledger()
