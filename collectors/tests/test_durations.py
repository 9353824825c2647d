"""Our histogram of durations is the SDK's, made in another way."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from keylag_otel import instruments
from keylag_otel.durations import Durations
from keylag_otel.metering import histogram
from keylag_otel.traces import tracing

SCOPE = "keylag_otel"
NAME = instruments.REQUEST_DURATION.name
GET, POST = {"http.request.method": "GET"}, {"http.request.method": "POST"}
VALUES = [(0.0, GET), (0.001, GET), (0.0011, GET), (0.3, POST), (5.0, GET), (99.0, GET)]
TIMES = ("start_time_unix_nano", "time_unix_nano")


class Both:
    """The SDK's histogram and ours."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        meter = MeterProvider([self._reader]).get_meter(SCOPE)
        meter.create_counter("other").add(1)
        self._record = histogram(meter, instruments.REQUEST_DURATION)
        self._ours = Durations(instruments.REQUEST_DURATION, SCOPE)

    def record(self, seconds: float, attributes: dict[str, Any]) -> None:
        """Record a value in each."""
        self._record(seconds, attributes)
        self._ours.record(seconds, attributes)

    def collect(self) -> tuple[Any, Any]:
        """Return the SDK's metric and ours, which comes behind it."""
        found = metrics_of(self._ours.added_to(self._reader.get_metrics_data()))
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
        for name in ("bucket_counts", "explicit_bounds"):
            point[name] = list(point[name])
    data = metric.data.aggregation_temporality
    return {"unit": metric.unit, "as": data, "points": points}


@pytest.fixture
def both() -> Both:
    return Both()


def test_it_is_the_same_as_the_sdks(both) -> None:
    for value, attributes in VALUES:
        both.record(value, attributes)

    theirs, ours = both.collect()
    assert plain(ours) == plain(theirs)
    assert ours.description == theirs.description


def test_it_goes_on_adding_up_as_the_sdks_does(both) -> None:
    both.record(0.2, GET)
    first = both.collect()
    both.record(0.4, GET)
    both.record(0.4, POST)

    theirs, ours = both.collect()
    assert plain(ours) == plain(theirs) != plain(first[0])
    (began,) = {point.start_time_unix_nano for point in ours.data.data_points}
    assert began == first[1].data.data_points[0].start_time_unix_nano


def test_the_last_traced_request_of_a_bucket_is_its_exemplar_once(
    both, monkeypatch
) -> None:
    tracer = trace.NoOpTracer()
    monkeypatch.setattr(tracing.Process, "tracing", tracing.Tracing(tracer, None))
    traced(both, 1, TraceFlags.SAMPLED, 0.2)
    traced(both, 2, TraceFlags.SAMPLED, 0.21)
    traced(both, 3, TraceFlags.DEFAULT, 0.22)
    traced(both, 4, TraceFlags.SAMPLED, 4.0)

    theirs, ours = map(exemplars, both.collect())
    assert sorted(ours) == sorted(theirs) == [(0.21, 2, 2), (4.0, 4, 4)]
    assert exemplars(both.collect()[1]) == []


def traced(both: Both, number: int, flags: int, seconds: float) -> None:
    span = NonRecordingSpan(
        SpanContext(number, number, is_remote=False, trace_flags=TraceFlags(flags))
    )
    token = context.attach(trace.set_span_in_context(span))
    both.record(seconds, GET)
    context.detach(token)


def exemplars(metric: Any) -> list[tuple[float, int, int]]:
    (point,) = metric.data.data_points
    return [(e.value, e.trace_id, e.span_id) for e in point.exemplars]


def test_without_requests_nothing_is_added(both) -> None:
    assert both.collect() == ()
