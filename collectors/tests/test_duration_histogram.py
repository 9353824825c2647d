"""Keylag's histogram of durations equals that of the SDK."""

from __future__ import annotations

from typing import Any

import pytest
from fake_time import FakeTime
from opentelemetry import context, trace
from opentelemetry.sdk import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from keylag_otel import instruments, meter_provider
from keylag_otel.appended_histogram import SCOPE
from keylag_otel.duration_histogram import DurationHistogram
from keylag_otel.instrument_factory import create_histogram
from keylag_otel.request_aggregator import RequestAggregator
from keylag_otel.request_timer import start_timer

NEEDS_EXEMPLARS = pytest.mark.skipif(
    not hasattr(metrics, "Exemplar"), reason="this OpenTelemetry has no exemplars"
)
NAME = instruments.REQUEST_DURATION.name
GET, POST = "GET", "POST"
VALUES = (
    *((0, GET), (10**6, GET), (1_100_000, GET), (99 * 10**9, GET)),
    (3 * 10**8, POST),
)
TIMES = ("start_time_unix_nano", "time_unix_nano")


class Both:
    """The SDK's histogram and ours."""

    def __init__(self, time: FakeTime) -> None:
        self._time = time
        self._reader = InMemoryMetricReader()
        given = MeterProvider([self._reader], views=meter_provider.views())
        meter = given.get_meter(SCOPE)
        meter.create_counter("other").add(1)
        self._record = create_histogram(meter, instruments.REQUEST_DURATION)
        self._aggregator = RequestAggregator()
        self._ours = DurationHistogram(instruments.REQUEST_DURATION, self._aggregator)
        self._aggregator.reset(self._record, self._ours.record_exemplar)

    def record(self, nanoseconds: int, method: str) -> None:
        """Add a request that takes so long."""
        timer = start_timer({"REQUEST_METHOD": method})
        self._time.passes(nanoseconds)
        timer.accumulate()
        timer.is_traced = trace.get_current_span().get_span_context().is_valid
        self._aggregator.add(timer, 200)
        if timer.is_traced:
            self._aggregator.record_exemplar(timer, 200)

    def collect(self) -> tuple[Any, Any]:
        """Return the SDK's metric and ours, which follows it."""
        found = metrics_of(self._ours.append_to(self._reader.get_metrics_data()))
        return tuple(metric for metric in found if metric.name == NAME)


def metrics_of(collected: MetricsData) -> list[Any]:
    (resource,) = collected.resource_metrics
    return [m for scope in resource.scope_metrics for m in scope.metrics]


def plain(metric: Any) -> dict[str, Any]:
    """Return all of a metric but the moments."""
    points = [
        {
            name: getattr(point, name)
            for name in type(point).__dataclass_fields__
            if name not in (*TIMES, "exemplars")
        }
        for point in metric.data.data_points
    ]
    for point in points:
        point["sum"] = pytest.approx(point["sum"])
        for name in ("bucket_counts", "explicit_bounds"):
            point[name] = list(point[name])
    data = metric.data.aggregation_temporality
    return {"unit": metric.unit, "as": data, "points": points}


@pytest.fixture
def both(time) -> Both:
    return Both(time)


def test_histogram_equals_that_of_the_sdk(both) -> None:
    for value, attributes in VALUES:
        both.record(value, attributes)

    theirs, ours = both.collect()
    assert plain(ours) == plain(theirs)
    assert ours.description == theirs.description


def test_histogram_is_cumulative_like_that_of_the_sdk(both) -> None:
    both.record(2 * 10**8, GET)
    first = both.collect()
    both.record(4 * 10**8, GET)
    both.record(4 * 10**8, POST)

    theirs, ours = both.collect()
    assert plain(ours) == plain(theirs) != plain(first[0])
    (started_at,) = {point.start_time_unix_nano for point in ours.data.data_points}
    assert started_at == first[1].data.data_points[0].start_time_unix_nano


@NEEDS_EXEMPLARS
def test_last_traced_request_of_a_bucket_is_exported_as_exemplar_once(both) -> None:
    traced(both, 1, TraceFlags.SAMPLED, 200)
    traced(both, 2, TraceFlags.SAMPLED, 210)
    traced(both, 3, TraceFlags.DEFAULT, 220)
    traced(both, 4, TraceFlags.SAMPLED, 4000)

    theirs, ours = map(exemplars, both.collect())
    assert sorted(ours) == sorted(theirs) == [(0.21, 2, 2), (4.0, 4, 4)]
    assert exemplars(both.collect()[1]) == []


def traced(both: Both, number: int, flags: int, milliseconds: int) -> None:
    span = NonRecordingSpan(
        SpanContext(number, number, is_remote=False, trace_flags=TraceFlags(flags))
    )
    token = context.attach(trace.set_span_in_context(span))
    both.record(milliseconds * 10**6, GET)
    context.detach(token)


def exemplars(metric: Any) -> list[tuple[float, int, int]]:
    (point,) = metric.data.data_points
    return [(e.value, e.trace_id, e.span_id) for e in point.exemplars]


def test_without_requests_no_metric_is_appended(both) -> None:
    assert both.collect() == ()
