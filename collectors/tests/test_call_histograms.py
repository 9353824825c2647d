"""Keylag's histograms of single calls equal those of the SDK."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from test_duration_histogram import metrics_of, plain

from keylag_otel.appended_histogram import SCOPE
from keylag_otel.call_histograms import CallHistograms
from keylag_otel.instrument_factory import create_histogram
from keylag_otel.instruments import CALL_DURATIONS
from keylag_otel.model import CALL_BOUNDS, CALL_KINDS
from keylag_otel.request_aggregator import NS_PER_SECOND, RequestAggregator
from keylag_otel.request_timer import start_timer, timer_var, wrap_cache_call

#: At, around and above the bounds of buckets.
VALUES = (0, CALL_BOUNDS[0], CALL_BOUNDS[0] + 1, 3 * 10**6, CALL_BOUNDS[-1] + 1)
BUCKETS = tuple(bound / NS_PER_SECOND for bound in CALL_BOUNDS)


class Backend:
    """A cache backend whose round trips take as long as the test says."""

    _keylag_layer = "layer"


@pytest.fixture
def call(time) -> Any:
    """Return a function that makes a single call of a kind in a request."""
    aggregator = RequestAggregator()

    def make(kind: int, nanoseconds: int) -> None:
        timer = start_timer({"REQUEST_METHOD": "GET"})
        timer_var.set(timer)
        wrap_cache_call(
            lambda _: time.passes(nanoseconds), 1, kind, lambda *_: 0, lambda *_: 0
        )(Backend())
        timer_var.set(None)
        timer.accumulate()
        aggregator.add(timer, 200)

    make.aggregator = aggregator
    return make


def collect(reader: InMemoryMetricReader, ours: CallHistograms) -> dict[str, list[Any]]:
    """Return the SDK's metrics and ours by name, in this order."""
    found: dict[str, list[Any]] = {}
    for metric in metrics_of(ours.append_to(reader.get_metrics_data())):
        found.setdefault(metric.name, []).append(metric)
    return found


def without_extremes(metric: Any) -> dict[str, Any]:
    seen = plain(metric)
    for point in seen["points"]:
        del point["min"], point["max"]
    seen["points"].sort(key=lambda point: sorted(point["attributes"].items()))
    return seen


def test_histograms_equal_those_of_the_sdk(call) -> None:
    reader = InMemoryMetricReader()
    names = [each.name for each in CALL_DURATIONS.values()]
    views = [
        View(
            instrument_name=name,
            aggregation=ExplicitBucketHistogramAggregation(BUCKETS),
        )
        for name in names
    ]
    meter = MeterProvider([reader], views=views).get_meter(SCOPE)
    record = {
        name: create_histogram(meter, instrument)
        for name, instrument in CALL_DURATIONS.items()
    }
    for kind, (name, value) in enumerate(CALL_KINDS):
        (attribute,) = CALL_DURATIONS[name].attributes
        for nanoseconds in VALUES[: kind + 1]:
            call(kind, nanoseconds)
            record[name](nanoseconds / NS_PER_SECOND, {attribute: value})

    both = collect(reader, CallHistograms(call.aggregator))

    assert sorted(both) == sorted(names)
    for theirs, ours in both.values():
        assert without_extremes(ours) == without_extremes(theirs)
        assert ours.description == theirs.description


def test_without_calls_no_metric_is_appended() -> None:
    reader = InMemoryMetricReader()
    MeterProvider([reader]).get_meter(SCOPE).create_counter("other").add(1)

    assert [*collect(reader, CallHistograms(RequestAggregator()))] == ["other"]


def test_every_kind_has_an_instrument() -> None:
    assert {name for name, _ in CALL_KINDS} == set(CALL_DURATIONS)
