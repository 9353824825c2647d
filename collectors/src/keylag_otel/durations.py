"""How long requests took: a histogram that a request pays next to nothing for.

The SDK's own makes some thirty calls for each value that it records.  So where
Keylag exports by itself, it counts the values, and makes the data points once per
export.  In a provider that a deployer has set, the SDK's histogram is used.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from threading import Lock
from time import time_ns
from typing import TYPE_CHECKING, Any

from opentelemetry.context import get_current
from opentelemetry.trace import get_current_span

from keylag_otel.instruments import DURATION_BUCKETS, Instrument
from keylag_otel.traces import tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import HistogramDataPoint, MetricsData


class _Point:
    """The values with one set of attributes; an exemplar is of a bucket's last one."""

    __slots__ = ("attributes", "counts", "exemplars", "longest", "shortest", "total")

    def __init__(self, attributes: dict[str, Any]) -> None:
        self.attributes = attributes
        self.counts = [0] * (len(DURATION_BUCKETS) + 1)
        self.exemplars: dict[int, tuple[float, int, int, int]] = {}
        self.shortest, self.longest, self.total = float("inf"), 0.0, 0.0

    def exemplify(self, seconds: float, bucket: int) -> None:
        """Let the current span be an exemplar, if it is one that is sampled."""
        span = get_current_span().get_span_context()
        if span.trace_flags.sampled:
            known = (seconds, time_ns(), span.span_id, span.trace_id)
            self.exemplars[bucket] = known


class Durations:
    """A cumulative histogram over ``DURATION_BUCKETS``, in seconds."""

    def __init__(self, instrument: Instrument, scope: str) -> None:
        self._instrument = instrument
        self._scope = scope
        self._began = time_ns()
        self._points: dict[int, _Point] = {}
        self._lock = Lock()

    def record(self, seconds: float, attributes: dict[str, Any]) -> None:
        """Record a value.

        Equal attributes have to be the same dictionary, as the ledger's are.
        """
        bucket = bisect_left(DURATION_BUCKETS, seconds)
        with self._lock:
            point = self._points.get(id(attributes))
            if point is None:
                point = self._points[id(attributes)] = _Point(attributes)
            point.counts[bucket] += 1
            point.total += seconds
            point.shortest = min(point.shortest, seconds)
            point.longest = max(point.longest, seconds)
            if tracing.Process.tracing is not None and get_current():
                point.exemplify(seconds, bucket)

    def added_to(self, collected: MetricsData) -> MetricsData:
        """Return what was collected, with this histogram in its scope."""
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415 - optional
            AggregationTemporality,
            Histogram,
            Metric,
        )

        with self._lock:
            points = [self._data_point(point) for point in self._points.values()]
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

    def _data_point(self, point: _Point) -> HistogramDataPoint:
        from opentelemetry.sdk.metrics import Exemplar  # noqa: PLC0415 - optional
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415
            HistogramDataPoint,
        )

        exemplars, point.exemplars = point.exemplars, {}
        return HistogramDataPoint(
            attributes=point.attributes,
            start_time_unix_nano=self._began,
            time_unix_nano=time_ns(),
            count=sum(point.counts),
            sum=point.total,
            bucket_counts=list(point.counts),
            explicit_bounds=DURATION_BUCKETS,
            min=point.shortest,
            max=point.longest,
            exemplars=[Exemplar({}, *known) for known in exemplars.values()],
        )
