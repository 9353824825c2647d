"""Metrics, spans, headers and logs of a service contain no tokens."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from auth_token_service import Service, listed
from keystone_client import Keystone, password
from keystone_site import PASSWORD, Site
from secret_values import Output, Secrets, break_all
from test_auth_token import cached_in
from test_secret_leaks import exported

from keylag_otel import AuthTokenInstrumentor

#: The expectations are those of the current keystonemiddleware.
pytestmark = pytest.mark.newest

Seen = dict[str, Any]
CHANNELS = ("metrics", "OTLP", "spans", "Server-Timing", "logs")
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def providers() -> tuple[Any, Any]:
    """Set up metrics and spans of this process; return what reads them."""
    from opentelemetry import trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
        InMemorySpanExporter,
    )

    reader, spans = InMemoryMetricReader(), InMemorySpanExporter()
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(tracing)
    AuthTokenInstrumentor().instrument(meter_provider=MeterProvider([reader]))
    return reader, spans


class Arrived:
    """A Keystone that records the trace ids of its requests."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.traces: list[str | None] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        self.traces.append(environ.get("HTTP_TRACEPARENT"))
        return self.application(environ, start_response)


def break_hooks() -> None:
    """Make the functions of hooks raise, with their arguments in the message."""
    from keylag_otel.auth_token import calls, hooks, spans

    break_all(
        (calls, "record"),
        (hooks, "record"),
        (hooks, "_count_validation"),
        (spans, "tracer"),
    )


def drive(keystone: Keystone, memcached: int) -> Seen:
    """Use valid, invalid and no tokens, with working and with failing hooks."""
    reader, spans = providers()
    secrets, output = Secrets(), Output()
    keystone.application = arrived = Arrived(keystone.application)
    secrets.add("password", f"{PASSWORD}-canary")
    secrets.add("path", "canary-path")
    secrets.add("id", *keystone.ids.values())
    secrets.add("odd", "canary-token")
    statuses, headers = [], []
    logging.getLogger("keylag_otel").setLevel(logging.DEBUG)
    with output.listening(), listed(keystone) as url:
        arrived.traces.clear()
        for _ in range(2):
            service = Service(url, **cached_in(memcached), memcache_pool_maxsize=1)
            rejected = Service(url, password=f"{PASSWORD}-canary")
            token = keystone.issue(password("admin")).token
            secrets.add("token", token)
            for one, used in (
                (service, token),
                (service, token),
                (service, "canary-token"),
                (rejected, token),
            ):
                status, answered, _ = one.call(used, traceparent=CALLER)
                statuses.append(status)
                headers.append(answered.get("Server-Timing", ""))
            break_hooks()
    shown = {
        **exported(reader),
        "spans": "\n".join(span.to_json() for span in spans.get_finished_spans()),
        "Server-Timing": "\n".join(headers),
        "logs": "\n".join(output.logs),
    }
    return {
        "shown": shown,
        "found": {name: secrets.found_in(text) for name, text in shown.items()},
        "statuses": statuses,
        "traces": arrived.traces,
        "spans": [
            (
                span.name,
                span.kind.name,
                dict(span.attributes or {}),
                f"{span.context.trace_id:032x}",
                f"{span.context.span_id:016x}",
                span.parent and f"{span.parent.span_id:016x}",
            )
            for span in spans.get_finished_spans()
        ],
    }


@pytest.fixture(scope="module")
def driven(processes, prepared, tmp_path_factory, memcached) -> Seen:
    site = Site(processes, prepared, tmp_path_factory.mktemp("secrets"))
    environment = {"KEYLAG_SERVER_TIMING": "true"}
    seen: Seen = site.run(drive, memcached, environment=environment)
    return seen


@pytest.mark.parametrize("channel", CHANNELS)
def test_no_secret_is_in_any_output(driven, channel) -> None:
    assert driven["found"][channel] == set()


@pytest.mark.parametrize(
    ("channel", "shows"),
    [
        ("metrics", "keystone.auth_token.call.duration"),
        ("OTLP", "keystone.keylag.faults"),
        ("spans", "keystone.auth_token.validation"),
        ("Server-Timing", "keystone.auth_token;dur="),
        ("logs", "keylag failed in the wrapper of"),
    ],
)
def test_outputs_contain_what_they_should(driven, channel, shows) -> None:
    assert shows in driven["shown"][channel]


def test_failing_hooks_leave_responses_unchanged(driven) -> None:
    assert driven["statuses"] == [200, 200, 401, 503] * 2


def test_auth_token_span_is_in_the_callers_trace(driven) -> None:
    spans = [span for span in driven["spans"] if span[0] == "auth_token"]
    _, trace_id, parent_id, _ = CALLER.split("-")

    judgements = [span[2]["keystone.auth_token.validation"] for span in spans]
    assert judgements == ["online", "offline", "online", "online"]
    assert {span[3] for span in spans} == {trace_id}
    assert {span[5] for span in spans} == {parent_id}


def test_calls_to_keystone_propagate_their_span(driven) -> None:
    calls = [span for span in driven["spans"] if span[1] == "CLIENT"]
    own = {span[4] for span in driven["spans"] if span[0] == "auth_token"}

    sent = [f"00-{span[3]}-{span[4]}-01" for span in calls]
    assert sent == [trace for trace in driven["traces"] if trace]
    assert {span[5] for span in calls} <= own
    assert {"GET", "POST"} == {span[0] for span in calls}
