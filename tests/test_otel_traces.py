"""OpenTelemetry traces of a call whose client has a trace context."""

import json
import time
from typing import Any

import pytest
import requests
from click.testing import CliRunner
from collector_spans import attribute, spans

from keylag.commands import explain
from keylag.stack import Stack

pytestmark = pytest.mark.stack

TRACE, CLIENT = "5b8aa5a2d2c872e8321cf37308d69df2", "051581bf3cb55c13"
TIMEOUT_SECONDS = 60


def log_in(stack: Stack) -> None:
    """Request a token with a traceparent header."""
    admin = stack.admin()
    domain = {"id": admin.user_domain_id}
    user = {"name": admin.username, "domain": domain, "password": admin.password}
    identity = {"methods": ["password"], "password": {"user": user}}
    requests.post(
        f"{admin.auth_url}/auth/tokens",
        json={"auth": {"identity": identity}},
        headers={"traceparent": f"00-{TRACE}-{CLIENT}-01"},
        timeout=30,
    )


@pytest.fixture(scope="module")
def traced(stack: Stack) -> list[dict[str, Any]]:
    """The spans of a token request with a traceparent header."""
    log_in(stack)
    # The span of the request is the last one of its batch.
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not any(span["parentSpanId"] == CLIENT for span in spans(stack, TRACE)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return list(spans(stack, TRACE))


def test_request_span_is_a_child_of_the_caller(traced: list[dict[str, Any]]) -> None:
    (request,) = (span for span in traced if span["parentSpanId"] == CLIENT)

    assert request["name"] == "POST /v3/auth/tokens"
    assert attribute(request, "http.route") == "/v3/auth/tokens"


def test_statement_spans_are_below_the_request(traced: list[dict[str, Any]]) -> None:
    by_id = {span["spanId"]: span for span in traced}
    statements = [span for span in traced if attribute(span, "db.query.text")]

    def root(span: dict[str, Any]) -> dict[str, Any]:
        parent = by_id.get(span["parentSpanId"])
        return root(parent) if parent else span

    assert statements
    assert {root(span)["parentSpanId"] for span in statements} == {CLIENT}
    assert {attribute(s, "db.system.name") for s in statements} <= {"mysql", "mariadb"}


def test_explain_finds_the_trace_by_its_id(
    stack: Stack, traced: list[dict[str, Any]]
) -> None:
    """OSProfiler's Redis, the first location, does not have the trace."""
    words = [TRACE, f"--state={stack.folder}", "--output=json"]
    document = json.loads(CliRunner().invoke(explain.command, words).stdout)

    assert document["call"] == "POST /v3/auth/tokens"
    assert document["categories"]["password_hash"] > 0
    assert len(document["statements"]) > 0


def test_exemplar_has_the_trace_id(stack: Stack) -> None:
    """One export has the exemplar; the next may replace it before a scrape."""
    query = {
        "query": "http_server_request_duration_seconds_bucket",
        "start": str(time.time() - 600),
        "end": str(time.time() + 600),
    }
    url = f"{stack.url('prometheus')}/api/v1/query_exemplars"
    deadline = time.monotonic() + TIMEOUT_SECONDS
    found: set[str] = set()
    while TRACE not in found and time.monotonic() < deadline:
        log_in(stack)
        time.sleep(0.5)
        answer = requests.get(url, params=query, timeout=10).json()
        found = {
            each["labels"]["trace_id"]
            for series in answer["data"]
            for each in series["exemplars"]
        }

    assert TRACE in found
