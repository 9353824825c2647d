"""How long requests took: a histogram that a request pays next to nothing for.

The SDK's own makes some thirty calls for each value that it records.  So where
Keylag exports by itself, the ledger counts the values, and the data points are made
of it once per export.  In a provider that a deployer has set, the SDK's is used.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from time import time_ns
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import get_current_span

from keylag_otel.instruments import DURATION_BUCKETS, Instrument
from keylag_otel.ledger import NS_PER_SECOND, Ledger, Row

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import HistogramDataPoint, MetricsData

#: What an exemplar of the SDK's is made of: value, time, span and trace.
_Known = tuple[float, int, int, int]


class Durations:
    """A cumulative histogram of a ledger's requests, in seconds.

    An exemplar is the last request of its bucket that was traced.
    """

    def __init__(self, instrument: Instrument, scope: str, ledger: Ledger) -> None:
        self._instrument = instrument
        self._scope = scope
        self._ledger = ledger
        self._began = time_ns()
        self._exemplars: dict[int, dict[int, _Known]] = {}

    def exemplify(self, seconds: float, attributes: dict[str, Any]) -> None:
        """Let the current span be an exemplar, if it is one that is sampled."""
        span = get_current_span().get_span_context()
        if span.trace_flags.sampled:
            bucket = bisect_left(DURATION_BUCKETS, seconds)
            known = (seconds, time_ns(), span.span_id, span.trace_id)
            self._exemplars.setdefault(id(attributes), {})[bucket] = known

    def added_to(self, collected: MetricsData) -> MetricsData:
        """Return what was collected, with this histogram in its scope."""
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415 - optional
            AggregationTemporality,
            Histogram,
            Metric,
        )

        points = [self._data_point(row) for row in self._ledger.rows()]
        named = self._instrument
        data = Histogram(points, AggregationTemporality.CUMULATIVE)
        metric = Metric(named.name, named.description, named.unit, data)
        resources = [
            replace(
                resource,
                scope_metrics=[
                    replace(scope, metrics=[*scope.metrics, metric])
                    if points and scope.scope.name == self._scope
                    else scope
                    for scope in resource.scope_metrics
                ],
            )
            for resource in collected.resource_metrics
        ]
        return replace(collected, resource_metrics=resources)

    def _data_point(self, row: Row) -> HistogramDataPoint:
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415 - optional
            HistogramDataPoint,
        )

        attributes, totals = row
        return HistogramDataPoint(
            attributes=attributes,
            start_time_unix_nano=self._began,
            time_unix_nano=time_ns(),
            count=sum(totals.buckets),
            sum=totals.wall_ns / NS_PER_SECOND,
            bucket_counts=list(totals.buckets),
            explicit_bounds=DURATION_BUCKETS,
            min=totals.shortest / NS_PER_SECOND,
            max=totals.longest / NS_PER_SECOND,
            **self._exemplars_of(attributes),
        )

    def _exemplars_of(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Return the exemplars since the last time, as a point's field if it has it."""
        known = self._exemplars.pop(id(attributes), {})
        try:
            from opentelemetry.sdk.metrics import Exemplar  # noqa: PLC0415 - since 1.28
        except ImportError:
            return {}
        return {"exemplars": [Exemplar({}, *each) for each in list(known.values())]}
