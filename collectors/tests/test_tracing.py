"""Sampling decisions and span attributes, without a Keystone."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.sampling import DEFAULT_OFF, DEFAULT_ON
from span_collector import Traces
from test_duration_histogram import NEEDS_EXEMPLARS

from keylag_otel import environment, telemetry
from keylag_otel.model import EVENT_LIMIT
from keylag_otel.request import TimedApplication
from keylag_otel.request_aggregator import AGGREGATOR
from keylag_otel.request_timer import current_timer
from keylag_otel.traces import tracing
from keylag_otel.traces.tracing import RequestTracer
from keylag_otel.wrappers import timed

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def caller(*, sampled: bool) -> dict[str, str]:
    """Return the headers of a caller that traces."""
    return {"HTTP_TRACEPARENT": f"00-{TRACE}-{SPAN}-0{int(sampled)}"}


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch) -> Any:
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    yield
    tracing.use_provider(None)
    telemetry.use_provider(None)
    tracing.State.tracing = None
    AGGREGATOR.reset()


@timed("sql", "validate")
def query() -> None:
    """A wrapped call."""


def called(
    environ: dict[str, str] | None = None, status: str = "200 OK", queries: int = 1
) -> Any:
    """Send a request; return the events of its timer at the end."""
    seen: list[Any] = []

    def application(environ: Any, start_response: Any) -> list[bytes]:
        for _ in range(queries):
            query()
        timer = current_timer()
        assert timer is not None
        seen.append(timer.events if timer.records_events else None)
        timer.route = "/v3/users/<string:user_id>"
        start_response(status, [])
        return [b""]

    request = {"REQUEST_METHOD": "GET", **(environ or {})}
    TimedApplication(application)(request, lambda *_: None)
    return seen[0]


def test_events_are_not_recorded_by_default() -> None:
    telemetry.use_provider(None)

    assert called(caller(sampled=True)) is None


@pytest.mark.parametrize(
    ("sampler", "environ", "is_traced"),
    [
        (DEFAULT_OFF, {}, False),
        (DEFAULT_ON, {}, True),
        (DEFAULT_OFF, caller(sampled=True), True),
        (DEFAULT_ON, caller(sampled=False), False),
    ],
)
def test_sampler_decides_at_the_start(sampler, environ, is_traced) -> None:
    traces = Traces(sampler)

    events = called(environ)

    assert (events is not None) is is_traced
    assert [span["name"] for span in traces.taken()] == [
        "GET /v3/users/{user_id}",
        "query",
    ] * is_traced


@pytest.mark.parametrize(("seconds", "is_traced"), [("0", True), ("1000", False)])
@pytest.mark.parametrize("environ", [{}, caller(sampled=False)])
def test_slow_request_is_traced(monkeypatch, seconds, is_traced, environ) -> None:
    monkeypatch.setenv("KEYLAG_TRACE_SLOW_SECONDS", seconds)
    traces = Traces(DEFAULT_OFF)

    called(environ)

    assert len(traces.taken()) == 2 * is_traced


@pytest.mark.parametrize(
    ("sampler", "argument", "share"),
    [
        ("always_off", "", 0.0),
        ("parentbased_always_on", "", 1.0),
        ("parentbased_traceidratio", "0.25", 0.25),
        ("traceidratio", "no number", None),
        ("traceidratio", "7", None),
        ("of_an_operator", "0.25", None),
        ("", "0.25", None),
    ],
)
def test_sampling_ratio_of_known_samplers(
    monkeypatch, sampler, argument, share
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", argument)

    assert environment.sampling_ratio() == share


@pytest.mark.parametrize(
    ("environ", "drawn", "is_traced"),
    [
        ({}, 0.24, True),
        ({}, 0.26, False),
        (caller(sampled=True), 0.26, True),
        (caller(sampled=False), 0.24, False),
    ],
)
def test_root_spans_are_sampled_by_ratio(
    monkeypatch, environ, drawn, is_traced
) -> None:
    traces = Traces(DEFAULT_OFF)
    called()
    tracer = traces.provider.get_tracer("of a test")
    monkeypatch.setattr(tracing, "random", lambda: drawn)
    monkeypatch.setattr(tracing.State, "tracing", RequestTracer(tracer, ratio=0.25))

    called(environ)

    assert len(traces.taken()) == 2 * is_traced


def test_request_span_is_a_child_of_the_callers_span() -> None:
    traces = Traces(DEFAULT_OFF)

    called(caller(sampled=True))

    request, inner = traces.taken()
    assert f"{request['trace']:032x}" == f"{inner['trace']:032x}" == TRACE
    assert f"{request['parent']:016x}" == SPAN
    assert inner["parent"] == request["id"]


def test_request_span_is_a_child_of_the_current_span() -> None:
    traces = Traces(DEFAULT_ON)
    provider = tracing.State.given
    with provider.get_tracer("outer").start_as_current_span("outer"):
        called(caller(sampled=True))

    _, request, _ = traces.taken()
    assert f"{request['trace']:032x}" != TRACE


def test_request_span_has_attributes_and_status() -> None:
    traces = Traces(DEFAULT_ON)

    called(status="503 Service Unavailable")

    request, inner = traces.taken()
    assert (request["kind"], request["status"]) == ("SERVER", "ERROR")
    assert request["attributes"] == {
        "http.request.method": "GET",
        "http.route": "/v3/users/{user_id}",
        "http.response.status_code": 503,
        "error.type": "503",
        "keystone.phase": "wsgi",
        "keystone.operation": "other",
    }
    assert inner["attributes"] == {
        "code.function.name": f"{__name__}.query",
        "keystone.phase": "sql",
        "keystone.operation": "validate",
    }


def test_request_beyond_the_event_limit_has_an_attribute() -> None:
    traces = Traces(DEFAULT_ON)

    called(queries=EVENT_LIMIT)

    assert traces.taken()[0]["attributes"]["keystone.trace.cut"] is True


@NEEDS_EXEMPLARS
def test_a_traced_request_is_an_exemplar_of_its_duration() -> None:
    reader = InMemoryMetricReader()
    traces = Traces(DEFAULT_OFF)
    telemetry.use_provider(MeterProvider([reader]))
    called()
    called(caller(sampled=True))

    found = {
        exemplar.trace_id
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "http.server.request.duration"
        for point in metric.data.data_points
        for exemplar in point.exemplars
    }
    assert found == {traces.taken()[0]["trace"]} == {int(TRACE, 16)}


def test_unknown_exporter_is_logged_and_requests_work(monkeypatch, caplog) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "nonsense")
    telemetry.use_provider(None)

    assert called(caller(sampled=True)) is None
    assert "there is no traces exporter 'nonsense'" in caplog.text


def test_failing_tracer_is_suppressed(monkeypatch) -> None:
    traces = Traces(DEFAULT_ON)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise ValueError

    for owner, name in (
        (tracing, "build_tree"),
        (tracing.RequestTracer, "begin_trace"),
    ):
        monkeypatch.setattr(owner, name, fail)
        called()

    assert traces.taken() == []
    assert not trace.get_current_span().get_span_context().is_valid
    assert sum(count for count, _ in AGGREGATOR.request_counts("cache_calls")) == 0
    assert sum(count for count, _ in AGGREGATOR.counter_values("faults")) == 2
