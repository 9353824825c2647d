"""The histograms of single calls, made from an aggregator at each export.

Only Keylag's own provider exports them, because a request makes many single calls, and
the SDK's histogram makes some thirty Python calls for each value.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import time_ns
from typing import TYPE_CHECKING, Any

from keylag_otel.appended_histogram import append_histogram
from keylag_otel.instruments import CALL_DURATIONS, Instrument
from keylag_otel.model import CALL_BOUNDS, CALL_KINDS, NS_PER_SECOND
from keylag_otel.request_aggregator import RequestAggregator

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import HistogramDataPoint, MetricsData

_BUCKETS = tuple(bound / NS_PER_SECOND for bound in CALL_BOUNDS)

#: The timer keeps no minimum and maximum of single calls; OTLP leaves unset ones out.
_UNSET: Any = None


class CallHistograms:
    """Cumulative histograms of the single calls of an aggregator, in seconds."""

    def __init__(self, aggregator: RequestAggregator) -> None:
        self._aggregator = aggregator
        self._started_at = time_ns()

    def append_to(self, collected: MetricsData) -> MetricsData:
        """Return the collected metrics with these histograms appended."""
        calls = self._aggregator.calls
        for name, instrument in CALL_DURATIONS.items():
            points = list(self._points(name, instrument, calls))
            collected = append_histogram(collected, instrument, points)
        return collected

    def _points(
        self, name: str, instrument: Instrument, calls: dict[int, list[int]]
    ) -> Iterator[HistogramDataPoint]:
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415 - optional
            HistogramDataPoint,
        )

        (attribute,) = instrument.attributes
        for kind, (nanoseconds, *buckets) in calls.items():
            of, value = CALL_KINDS[kind]
            if of == name:
                yield HistogramDataPoint(
                    attributes={attribute: value},
                    start_time_unix_nano=self._started_at,
                    time_unix_nano=time_ns(),
                    count=sum(buckets),
                    sum=nanoseconds / NS_PER_SECOND,
                    bucket_counts=buckets,
                    explicit_bounds=_BUCKETS,
                    min=_UNSET,
                    max=_UNSET,
                )
