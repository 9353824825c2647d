"""Histograms that Keylag has counted itself, appended to what the SDK collected.

The SDK's histogram makes some thirty Python calls per recorded value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from keylag_otel.instruments import Instrument

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import HistogramDataPoint, MetricsData

#: The instrumentation scope of Keylag's metrics.
SCOPE = "keylag_otel"


def append_histogram(
    collected: MetricsData,
    instrument: Instrument,
    points: Sequence[HistogramDataPoint],
) -> MetricsData:
    """Return the collected metrics with a cumulative histogram in Keylag's scope.

    Without points no metric is appended.
    """
    from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415 - optional
        AggregationTemporality,
        Histogram,
        Metric,
    )

    data = Histogram(points, AggregationTemporality.CUMULATIVE)
    metric = Metric(instrument.name, instrument.description, instrument.unit, data)
    resources = [
        replace(
            resource,
            scope_metrics=[
                replace(scope, metrics=[*scope.metrics, metric])
                if points and scope.scope.name == SCOPE
                else scope
                for scope in resource.scope_metrics
            ],
        )
        for resource in collected.resource_metrics
    ]
    return replace(collected, resource_metrics=resources)
