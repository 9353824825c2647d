"""The aggregator of requests, from which asynchronous instruments read metrics.

A request adds some forty integers.  The SDK reads the sums once per export, so that
no request makes SDK calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, Callable, NamedTuple

from keylag_otel import instruments
from keylag_otel.counters import counter_attributes, counter_id
from keylag_otel.instruments import DURATION_BUCKETS
from keylag_otel.model import CELLS, NS_PER_SECOND
from keylag_otel.pure.aggregator import RequestKey, request_key
from keylag_otel.request_timer import COUNTS, Aggregate, Aggregator, RequestTimer

Record = Callable[[float, "dict[str, Any]"], None]

#: The cardinality limit; an aggregate has some 2.5 kB.  Keystone accepts some 400 pairs
#: of method and route.  What exceeds the limit is one overflow aggregate.
AGGREGATE_LIMIT = 1000
_OVERFLOW: RequestKey = ("", None, 0, None)

#: The route that refused requests keep.
_TOKENS = "/v3/auth/tokens"

_BOUNDS = tuple(round(bound * NS_PER_SECOND) for bound in DURATION_BUCKETS)
_PLACEHOLDER = re.compile(r"<(?:[^:<>]*:)?([^<>]+)>")


class AttributedAggregate(NamedTuple):
    """An aggregate with its metric attributes."""

    attributes: dict[str, Any]
    aggregate: Aggregate


@lru_cache(maxsize=1024)
def route_template(rule: str) -> str:
    """Convert Flask's ``/users/<string:user_id>`` to ``/users/{user_id}``."""
    return _PLACEHOLDER.sub(r"{\1}", rule)


class RequestAggregator(Aggregator):
    """Aggregates by method, route, status and authentication method.

    All four are closed sets, but any client can send every method to every route.  So
    refused requests keep their route only if they issue or validate a token, and the
    number of aggregates is limited to ``AGGREGATE_LIMIT``.
    """

    def __init__(self) -> None:
        super().__init__(_BOUNDS, len(COUNTS))
        self.reset()

    def reset(
        self, record: Record | None = None, record_exemplar: Record | None = None
    ) -> None:
        """Remove all aggregates and counters, and replace both recorders.

        ``record`` gets the wall time in seconds and the attributes of each request,
        ``record_exemplar`` those of traced requests.  Equal attributes are the same
        dictionary.
        """
        self.clear()
        self._attributes: dict[RequestKey, dict[str, Any]] = {}
        self._record_exemplar = record_exemplar
        self.on_request = None if record is None else partial(self._record, record)

    def add(self, timer: RequestTimer, status: int) -> None:
        """Add a finished request, within the cardinality limit."""
        if 400 <= status < 500 or timer.method == "OPTIONS":  # noqa: PLR2004
            _drop_route_if_refused(timer)
        key = timer.method, timer.route, status, timer.auth_method
        if key not in self._attributes:
            status = self._admit_key(timer, status)
        Aggregator.add(self, timer, status)

    def _admit_key(self, timer: RequestTimer, status: int) -> int:
        """Add the attributes of a new key; beyond the limit, use the overflow key."""
        if len(self._attributes) >= AGGREGATE_LIMIT:
            timer.method, timer.route, status, timer.auth_method = _OVERFLOW
        self._attributes_for(request_key(timer, status))
        return status

    def record_exemplar(self, timer: RequestTimer, status: int) -> None:
        """Make the current span an exemplar of an added request."""
        key = request_key(timer, status)
        if self._record_exemplar is not None and key in self._attributes:
            self._record(self._record_exemplar, timer, key)

    def _record(self, record: Record, timer: RequestTimer, key: RequestKey) -> None:
        record(timer.wall_ns / NS_PER_SECOND, self._attributes_for(key))

    def _attributes_for(self, key: RequestKey) -> dict[str, Any]:
        attributes = self._attributes.get(key)
        if attributes is None:
            attributes = request_attributes(*key)
            attributes = self._attributes.setdefault(key, attributes)
        return attributes

    def aggregates(self) -> list[AttributedAggregate]:
        """Return copies of all aggregates with their attributes."""
        found = self.by_key().items()
        return [
            AttributedAggregate(self._attributes_for(key), aggregate)
            for key, aggregate in found
        ]

    def phase_seconds(self) -> Iterator[tuple[float, dict[str, Any]]]:
        """Yield seconds and attributes of each cell."""
        for attributes, aggregate in self.aggregates():
            for cell, nanoseconds in aggregate.self_times().items():
                phase, operation = CELLS[cell]
                yield (
                    nanoseconds / NS_PER_SECOND,
                    {
                        **attributes,
                        instruments.PHASE: phase,
                        instruments.OPERATION: operation,
                    },
                )

    def request_counts(self, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield values and attributes of one of ``COUNTS``."""
        index = COUNTS.index(name)
        for attributes, aggregate in self.aggregates():
            yield aggregate.counts[index], attributes

    def counter_values(self, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield values and attributes of one of ``instruments.COUNTERS``."""
        for number, value in self.counters.items():
            instrument, attributes = counter_attributes(number)
            if instrument == name:
                yield value, attributes

    def count_fault(self, seam: str) -> None:
        """Count an exception of Keylag's own code."""
        self.increment(counter_id("faults", seam))


def _drop_route_if_refused(timer: RequestTimer) -> None:
    if timer.method == "OPTIONS" or not (timer.route == _TOKENS or timer.auth_method):
        timer.route = None


def request_attributes(
    method: str, route: str | None, status: int, auth_method: str | None
) -> dict[str, Any]:
    """Return the metric attributes of a request key."""
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


AGGREGATOR = RequestAggregator()
