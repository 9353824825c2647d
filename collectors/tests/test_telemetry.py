"""Export: what the SDK reads from the aggregator, once per process."""

from __future__ import annotations

import os
from typing import Any

import pytest
from fake_time import FakeTime
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from keylag_otel import environment, instrument_factory, meter_provider, telemetry
from keylag_otel.auth_token.instruments import BUCKETS, HISTOGRAMS
from keylag_otel.model import cell_of
from keylag_otel.request_aggregator import AGGREGATOR, route_template
from keylag_otel.request_timer import RequestTimer, set_time_source, start_timer


@pytest.fixture
def reader() -> InMemoryMetricReader:
    """A reader of a process that has just started."""
    reader = InMemoryMetricReader()
    telemetry.use_provider(MeterProvider([reader]))
    telemetry.start_once_per_process()
    yield reader
    telemetry.use_provider(None)
    AGGREGATOR.reset()


def read(reader: InMemoryMetricReader) -> dict[str, Any]:
    """Metric name to its list of points."""
    data = reader.get_metrics_data()
    if data is None:
        return {}
    return {
        metric.name: metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def finished(**cells: int) -> RequestTimer:
    time = FakeTime()
    set_time_source(time)
    timer = start_timer({"REQUEST_METHOD": "GET"})
    timer.route = "/v3/users/<string:user_id>"
    timer.auth_method = "password"
    for index, count in enumerate((6, 17)):
        for _ in range(count):
            timer.count(index)
    for name, nanoseconds in cells.items():
        timer.switch(cell_of(*name.split("__")))
        time.passes(nanoseconds)
    timer.accumulate()
    set_time_source(None)
    return timer


def test_requests_are_exported_in_base_units(reader) -> None:
    for _ in range(2):
        AGGREGATOR.add(finished(sql__validate=5 * 10**8, cache__roles=25 * 10**7), 200)

    metrics = read(reader)

    attributes = {
        "http.request.method": "GET",
        "http.route": "/v3/users/{user_id}",
        "http.response.status_code": 200,
        "keystone.auth.method": "password",
    }
    (duration,) = metrics["http.server.request.duration"].data.data_points
    assert metrics["http.server.request.duration"].unit == "s"
    assert (duration.count, duration.sum) == (2, 1.5)
    assert duration.attributes == attributes
    phases = {
        (p.attributes["keystone.phase"], p.attributes["keystone.operation"]): p.value
        for p in metrics["keystone.request.phase.time"].data.data_points
    }
    assert phases == {("sql", "validate"): 1.0, ("cache", "roles"): 0.5}
    (statements,) = metrics["keystone.request.sql.statements"].data.data_points
    assert (statements.value, statements.attributes) == (12, attributes)
    (calls,) = metrics["keystone.request.cache.calls"].data.data_points
    assert calls.value == 34


def test_views_set_bucket_bounds_without_advice(
    monkeypatch,
) -> None:
    monkeypatch.setattr(instrument_factory, "SUPPORTS_BUCKET_ADVICE", False)
    reader = InMemoryMetricReader()
    made = MeterProvider([reader], views=meter_provider.views())
    record = instrument_factory.create_histogram(
        made.get_meter("test"), HISTOGRAMS["age"]
    )

    record(400.0, {})

    (point,) = read(reader)[HISTOGRAMS["age"].name].data.data_points
    assert point.explicit_bounds == BUCKETS["age"]
    assert point.bucket_counts[BUCKETS["age"].index(600)] == 1


def test_forked_process_starts_empty(reader, monkeypatch) -> None:
    AGGREGATOR.add(finished(sql__validate=1), 200)
    monkeypatch.setattr(telemetry, "process_generation", lambda: -1)

    telemetry.start_once_per_process()

    assert list(AGGREGATOR.phase_seconds()) == []


def test_a_process_starts_only_once(reader) -> None:
    AGGREGATOR.add(finished(sql__validate=1), 200)

    telemetry.start_once_per_process()

    assert len(list(AGGREGATOR.phase_seconds())) == 1


def test_unknown_exporter_is_logged_and_requests_work(monkeypatch, caplog) -> None:
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "nonsense")
    telemetry.use_provider(None)

    telemetry.start_once_per_process()
    AGGREGATOR.add(finished(sql__validate=1), 200)

    assert "there is no metrics exporter 'nonsense'" in caplog.text
    telemetry.use_provider(None)
    AGGREGATOR.reset()


def test_no_exporter_means_no_provider(monkeypatch) -> None:
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")

    assert meter_provider.build() is None


@pytest.mark.parametrize(
    ("rule", "template"),
    [
        ("/v3/auth/tokens", "/v3/auth/tokens"),
        ("/v3/users/<string:user_id>", "/v3/users/{user_id}"),
        ("/v3/a/<b>/<path:c>", "/v3/a/{b}/{c}"),
    ],
)
def test_routes_follow_the_semantic_conventions(rule, template) -> None:
    assert route_template(rule) == template


@pytest.mark.parametrize(
    ("preference", "is_delta"),
    [("", False), ("Cumulative", False), ("delta", True), ("LowMemory", True)],
)
def test_temporality_preference_is_read(preference, is_delta, monkeypatch) -> None:
    name = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
    monkeypatch.setenv(name, preference)

    assert environment.uses_delta_temporality() is is_delta


def test_forked_process_has_another_generation(hot_path) -> None:
    before = hot_path.process_generation()
    child = os.fork()
    if child == 0:
        os._exit(hot_path.process_generation() == before)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert hot_path.process_generation() == before
