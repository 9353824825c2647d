"""No password, token, secret, code, id, key or path leaves through Keylag."""

from __future__ import annotations

import json
from typing import Any

import auth_scenarios
import pytest
from cache_backends import BACKENDS
from keystone_client import Keystone
from keystone_site import Site
from secret_values import Output, Secrets, break_hooks, exercise

#: The expectations are those of Keystone 30.
pytestmark = pytest.mark.newest

Shown = dict[str, str]

CHANNELS = (
    *("metrics", "OTLP", "Server-Timing", "SQL comments", "logs"),
    *("OSProfiler", "spans"),
)

KEY = "canary-hmac-key"


def metrics_reader() -> Any:
    """Return a reader of the metrics of this process."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from keylag_otel import telemetry

    reader = InMemoryMetricReader()
    telemetry.use_provider(MeterProvider([reader]))
    return reader


def exported(reader: Any) -> Shown:
    """Return the metrics as they are read, and as they are sent."""
    from opentelemetry.exporter.otlp.proto.common.metrics_encoder import (
        encode_metrics,
    )

    data = reader.get_metrics_data()
    sent = encode_metrics(data).SerializeToString()
    return {"metrics": data.to_json(), "OTLP": sent.decode("latin-1")}


def traced(keystone: Keystone) -> list[dict[str, Any]]:
    """Sign all requests from now on; returns where OSProfiler's points will be."""
    from osprofiler import _utils, notifier

    points: list[dict[str, Any]] = []
    notifier.set(points.append)
    content, sign = _utils.signed_pack({"base_id": "b", "parent_id": "b"}, KEY)
    headers = {"HTTP_X_TRACE_INFO": content.decode(), "HTTP_X_TRACE_HMAC": sign}
    application = keystone.application
    keystone.application = lambda environ, *args: application(
        {**environ, **headers}, *args
    )
    return points


def drive(keystone: Keystone, rounds: int) -> dict[str, Any]:
    """Produce all outputs of Keylag, with working and with failing hooks."""
    from opentelemetry.sdk.trace.sampling import DEFAULT_ON
    from span_collector import Traces
    from sqlalchemy import event
    from sqlalchemy.pool import Pool

    from keylag_otel import KeystoneInstrumentor

    # The fork server's seams were bound before comments were switched on.
    KeystoneInstrumentor().uninstrument()
    KeystoneInstrumentor().instrument()
    secrets, output = Secrets(), Output()
    traces, reader = Traces(DEFAULT_ON), metrics_reader()
    points = traced(keystone)
    event.listen(Pool, "connect", output.connected)
    statuses = []
    with output.listening(), output.keys_of_memcached(secrets):
        for number in range(rounds):
            for reply in exercise(keystone, secrets, f"canary-user-{number}"):
                output.headers.append(reply.headers.get("Server-Timing", ""))
                statuses.append(reply.status)
            break_hooks()
    secrets.add("token", keystone.admin)
    secrets.add("key", KEY)
    secrets.add("hash", "$2b$")
    shown = {
        **exported(reader),
        "Server-Timing": "\n".join(output.headers),
        "SQL comments": "\n".join(output.comments),
        "logs": "\n".join(output.logs),
        "OSProfiler": json.dumps(points),
        "spans": traces.sent(),
    }
    found = {channel: secrets.found_in(text) for channel, text in shown.items()}
    kinds = {kind: len(values) for kind, values in secrets.added.items()}
    return {"shown": shown, "statuses": statuses, "found": found, "kinds": kinds}


@pytest.fixture(scope="module")
def driven(processes, prepared, tmp_path_factory, memcached) -> dict[str, Any]:
    site = Site(processes, prepared, tmp_path_factory.mktemp("secrets"))
    options = {
        **auth_scenarios.OPTIONS,
        **BACKENDS["memcache_pool"].configuration(memcached),
        "profiler": {"enabled": True, "trace_sqlalchemy": True, "hmac_keys": KEY},
    }
    environment = {"KEYLAG_SERVER_TIMING": "true", "KEYLAG_SQL_COMMENT": "true"}
    seen: dict[str, Any] = site.run(drive, 2, options=options, environment=environment)
    return seen


@pytest.mark.parametrize("channel", CHANNELS)
def test_no_secret_is_in_any_output(driven, channel) -> None:
    assert driven["found"][channel] == set()


@pytest.mark.parametrize(
    ("channel", "shows"),
    [
        ("metrics", "keystone.auth.failures"),
        ("OTLP", "keystone.keylag.faults"),
        ("Server-Timing", "sql_statements;desc="),
        ("SQL comments", "keylag:route='POST /v3/auth/tokens'"),
        ("logs", "keylag failed in the wrapper of"),
        ("OSProfiler", '"statement": "SELECT user'),
        ("OSProfiler", '"path": "/v3/users/{id}"'),
        ("spans", "SELECT user"),
        ("spans", "WHERE user.id = ?"),
    ],
)
def test_outputs_contain_what_they_should(driven, channel, shows) -> None:
    assert shows in driven["shown"][channel]


def test_every_kind_of_secret_was_used(driven) -> None:
    kinds = {"password", "application credential", "totp", "id", "token", "odd"}

    assert set(driven["kinds"]) == kinds | {"cache key", "key", "hash"}
    assert driven["kinds"]["cache key"] > 20


def test_calls_succeeded_and_failed(driven) -> None:
    assert {200, 201, 204, 401, 404} <= set(driven["statuses"])


def test_failing_hooks_leave_responses_unchanged(driven) -> None:
    statuses = driven["statuses"]
    hot_path = len(statuses) // 2

    assert statuses[:hot_path] == statuses[hot_path:]
