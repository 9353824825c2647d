"""The extra service behind auth_token, with a real Keystone."""

import json
import time
from typing import Any

import pytest
import requests
from click.testing import CliRunner
from collector_spans import attribute, spans
from traffic import WAKING_CALLS, query_prometheus

from keylag.commands import explain
from keylag.commands.common import address_lines
from keylag.jtl import Sample
from keylag.sample_cloud import connect
from keylag.services.protected_service import NAME, THREADS
from keylag.stack import Stack

pytestmark = pytest.mark.stack

PROMETHEUS_SECONDS = 60
TRACE, CLIENT = "6b8aa5a2d2c872e8321cf37308d69df2", "051581bf3cb55c13"
BETWEEN = {2, 3}
"""Span kinds between processes: server and client."""
PATH_TO_CLIENT = ["keystone GET", "keylag-service GET", "keylag-service GET", "client"]
"""Spans between processes on the path from a statement up to the client."""
VALIDATIONS = "keystone_auth_token_validations_total"
KEYSTONE_VALIDATIONS = (
    f'sum(keystone_token_validations_total{{keystone_caller="{NAME}"}})'
)


def test_address_is_listed(stack: Stack) -> None:
    lines = dict(line.split() for line in address_lines(stack) if "source" not in line)

    assert lines["Service"] == stack.url("service")


def test_request_without_token_is_rejected(stack: Stack) -> None:
    answer = requests.get(stack.url("service"), timeout=30)

    assert answer.status_code == requests.codes.unauthorized
    assert stack.url("keystone") in answer.headers["WWW-Authenticate"]


def test_server_timing_separates_auth_token(called: list[Sample]) -> None:
    assert len(called) == 20
    for sample in called:
        assert sample.timing is not None
        steps = {operation for _, operation in sample.timing.cells}
        assert steps == {"auth_token", "other"}


def test_every_call_validates_its_token_once(
    stack: Stack, called: list[Sample]
) -> None:
    """Concurrent requests with an uncached token each validate it online."""
    by_kind = f"sum by (keystone_auth_token_validation) ({VALIDATIONS})"
    calls, tokens = len(called) + WAKING_CALLS, 3 + 1
    deadline = time.monotonic() + PROMETHEUS_SECONDS
    validations: dict[tuple[str, ...], float] = {}
    online = 0.0
    # The service and Keystone export at different times.
    while (
        sum(validations.values()) < calls or online < validations["online",]
    ) and time.monotonic() < deadline:
        time.sleep(0.2)
        validations = query_prometheus(stack, by_kind)
        online = query_prometheus(stack, KEYSTONE_VALIDATIONS).get((), 0.0)

    assert sum(validations.values()) == calls
    assert tokens <= validations["online",] <= tokens * THREADS
    assert online == validations["online",]


def test_one_trace_spans_client_service_keystone_and_sql(stack: Stack) -> None:
    token = connect(stack.admin()).auth_token
    traceparent = f"00-{TRACE}-{CLIENT}-01"
    headers = {"X-Auth-Token": token, "traceparent": traceparent}
    requests.get(stack.url("service"), headers=headers, timeout=30)
    deadline = time.monotonic() + PROMETHEUS_SECONDS
    paths: list[list[str]] = []
    is_whole = False
    while not (PATH_TO_CLIENT in paths and is_whole) and time.monotonic() < deadline:
        time.sleep(0.2)
        found = {span["spanId"]: span for span in spans(stack, TRACE)}
        statements = [s for s in found.values() if attribute(s, "db.query.text")]
        paths = [_path_up(found.get(s["parentSpanId"]), found) for s in statements]
        # Both processes export, and a span may come before the one that it is in.
        is_whole = {s["parentSpanId"] for s in found.values()} <= {*found, CLIENT}

    assert is_whole
    assert PATH_TO_CLIENT in paths
    assert_explained(stack)


def assert_explained(stack: Stack) -> None:
    """Assert that the explanation covers the request of the service exactly once."""
    words = [TRACE, f"--state={stack.folder}", "--output=json"]
    document = json.loads(CliRunner().invoke(explain.command, words).stdout)

    assert document["call"] == f"GET {NAME}"
    assert document["operations"]["auth_token"] > 0
    assert document["operations"]["validate"] > 0
    assert sum(document["categories"].values()) == pytest.approx(
        document["wall_seconds"], rel=0.01
    )


def _path_up(
    span: dict[str, Any] | None, by_id: dict[str, dict[str, Any]]
) -> list[str]:
    """Return service and method of the spans between processes, bottom up."""
    path = []
    while span:
        if int(span["kind"]) in BETWEEN:
            path.append(f"{span['service']} {span['name'].partition(' ')[0]}")
        if span["parentSpanId"] == CLIENT:
            path.append("client")
        span = by_id.get(span["parentSpanId"])
    return path
