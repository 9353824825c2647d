"""The way out: what the SDK reads from the ledger, once per process."""

from __future__ import annotations

import os
from typing import Any

import pytest
from fake_time import FakeTime
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from keylag_otel import environment, metering, provider, telemetry
from keylag_otel.auth_token.instruments import BUCKETS, HISTOGRAMS
from keylag_otel.clock import Clock, read_with, start
from keylag_otel.ledger import LEDGER, route_template
from keylag_otel.model import cell_of


@pytest.fixture
def reader() -> InMemoryMetricReader:
    """A reader of a process that has just started."""
    reader = InMemoryMetricReader()
    telemetry.use(MeterProvider([reader]))
    telemetry.start_once_per_process()
    yield reader
    telemetry.use(None)
    LEDGER.reset()


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


def finished(**cells: int) -> Clock:
    time = FakeTime()
    read_with(time)
    clock = start({"REQUEST_METHOD": "GET"})
    clock.route = "/v3/users/<string:user_id>"
    clock.auth_method = "password"
    for index, count in enumerate((6, 17)):
        for _ in range(count):
            clock.count(index)
    for name, nanoseconds in cells.items():
        clock.turn(cell_of(*name.split("__")))
        time.passes(nanoseconds)
    clock.book()
    read_with(None)
    return clock


def test_requests_come_out_as_metrics_in_base_units(reader) -> None:
    for _ in range(2):
        LEDGER.add(finished(sql__validate=5 * 10**8, cache__roles=25 * 10**7), 200)

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


def test_an_opentelemetry_whose_instruments_take_no_bounds_has_them_from_views(
    monkeypatch,
) -> None:
    monkeypatch.setattr(metering, "TAKES_BOUNDS", False)
    reader = InMemoryMetricReader()
    made = MeterProvider([reader], views=provider.views())
    record = metering.histogram(made.get_meter("test"), HISTOGRAMS["age"])

    record(400.0, {})

    (point,) = read(reader)[HISTOGRAMS["age"].name].data.data_points
    assert point.explicit_bounds == BUCKETS["age"]
    assert point.bucket_counts[BUCKETS["age"].index(600)] == 1


def test_a_child_process_starts_from_nothing(reader, monkeypatch) -> None:
    LEDGER.add(finished(sql__validate=1), 200)
    monkeypatch.setattr(telemetry, "process_number", lambda: -1)

    telemetry.start_once_per_process()

    assert list(LEDGER.phase_seconds()) == []


def test_a_process_starts_only_once(reader) -> None:
    LEDGER.add(finished(sql__validate=1), 200)

    telemetry.start_once_per_process()

    assert len(list(LEDGER.phase_seconds())) == 1


def test_an_exporter_that_does_not_exist_is_said_and_requests_go_on(
    monkeypatch, caplog
) -> None:
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "nonsense")
    telemetry.use(None)

    telemetry.start_once_per_process()
    LEDGER.add(finished(sql__validate=1), 200)

    assert "there is no metrics exporter 'nonsense'" in caplog.text
    telemetry.use(None)
    LEDGER.reset()


def test_no_exporter_means_no_provider(monkeypatch) -> None:
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")

    assert provider.build() is None


@pytest.mark.parametrize(
    ("rule", "template"),
    [
        ("/v3/auth/tokens", "/v3/auth/tokens"),
        ("/v3/users/<string:user_id>", "/v3/users/{user_id}"),
        ("/v3/a/<b>/<path:c>", "/v3/a/{b}/{c}"),
    ],
)
def test_routes_are_templates_in_the_form_of_the_conventions(rule, template) -> None:
    assert route_template(rule) == template


@pytest.mark.parametrize(
    ("preference", "is_delta"),
    [("", False), ("Cumulative", False), ("delta", True), ("LowMemory", True)],
)
def test_an_endpoint_may_want_what_was_added_only(
    preference, is_delta, monkeypatch
) -> None:
    name = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
    monkeypatch.setenv(name, preference)

    assert environment.wants_deltas() is is_delta


def test_a_forked_process_has_another_number(half) -> None:
    before = half.process_number()
    child = os.fork()
    if child == 0:
        os._exit(half.process_number() == before)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert half.process_number() == before
