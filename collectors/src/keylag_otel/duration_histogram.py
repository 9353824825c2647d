"""The histogram of request durations, made from the aggregates at each export.

Where Keylag has its own provider, the aggregator counts the values.  With the provider
of a deployer, Keylag uses the SDK's histogram.
"""

from __future__ import annotations

from bisect import bisect_left
from time import time_ns
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import get_current_span

from keylag_otel.appended_histogram import append_histogram
from keylag_otel.instruments import DURATION_BUCKETS, Instrument
from keylag_otel.model import NS_PER_SECOND
from keylag_otel.request_aggregator import AttributedAggregate, RequestAggregator

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import HistogramDataPoint, MetricsData

#: Value in seconds, time in Unix nanoseconds, span id and trace id.
_ExemplarValues = tuple[float, int, int, int]


class DurationHistogram:
    """A cumulative histogram of the requests of an aggregator, in seconds.

    The exemplar of a bucket is its last traced request.
    """

    def __init__(self, instrument: Instrument, aggregator: RequestAggregator) -> None:
        self._instrument = instrument
        self._aggregator = aggregator
        self._started_at = time_ns()
        self._exemplars: dict[int, dict[int, _ExemplarValues]] = {}

    def record_exemplar(self, seconds: float, attributes: dict[str, Any]) -> None:
        """Make the current span an exemplar if it is sampled."""
        span = get_current_span().get_span_context()
        if span.trace_flags.sampled:
            bucket = bisect_left(DURATION_BUCKETS, seconds)
            exemplar = (seconds, time_ns(), span.span_id, span.trace_id)
            self._exemplars.setdefault(id(attributes), {})[bucket] = exemplar

    def append_to(self, collected: MetricsData) -> MetricsData:
        """Return the collected metrics with this histogram appended."""
        points = [self._data_point(row) for row in self._aggregator.aggregates()]
        return append_histogram(collected, self._instrument, points)

    def _data_point(self, row: AttributedAggregate) -> HistogramDataPoint:
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415 - optional
            HistogramDataPoint,
        )

        attributes, aggregate = row
        return HistogramDataPoint(
            attributes=attributes,
            start_time_unix_nano=self._started_at,
            time_unix_nano=time_ns(),
            count=sum(aggregate.buckets),
            sum=aggregate.wall_ns / NS_PER_SECOND,
            bucket_counts=list(aggregate.buckets),
            explicit_bounds=DURATION_BUCKETS,
            min=aggregate.min_ns / NS_PER_SECOND,
            max=aggregate.max_ns / NS_PER_SECOND,
            **self._take_exemplars(attributes),
        )

    def _take_exemplars(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Return the exemplars since the last export, as arguments of a data point."""
        exemplars = self._exemplars.pop(id(attributes), {})
        try:
            from opentelemetry.sdk.metrics import Exemplar  # noqa: PLC0415 - since 1.28
        except ImportError:
            return {}
        return {"exemplars": [Exemplar({}, *each) for each in list(exemplars.values())]}
