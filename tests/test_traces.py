"""A call of a client that traces, from its span to the rows that Keystone read."""

import json
import time
from typing import Any

import pytest
import requests
from click.testing import CliRunner
from collected import attribute, spans

from keylag.commands import explain
from keylag.stack import Stack

pytestmark = pytest.mark.stack

TRACE, CLIENT = "5b8aa5a2d2c872e8321cf37308d69df2", "051581bf3cb55c13"
PATIENCE_SECONDS = 60


def log_in(stack: Stack) -> None:
    """Log in as a client that traces."""
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
    """The spans of a log-in whose caller has a trace."""
    log_in(stack)
    # A batch is sent whole, and the span of the request is the last in it.
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not any(span["parentSpanId"] == CLIENT for span in spans(stack, TRACE)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return list(spans(stack, TRACE))


def test_the_request_is_below_the_callers_span(traced: list[dict[str, Any]]) -> None:
    """One span is the client's child; it is named after the route."""
    (request,) = (span for span in traced if span["parentSpanId"] == CLIENT)

    assert request["name"] == "POST /v3/auth/tokens"
    assert attribute(request, "http.route") == "/v3/auth/tokens"


def test_the_statements_are_below_the_request(traced: list[dict[str, Any]]) -> None:
    """Each statement is found by its parents to be the request's."""
    by_id = {span["spanId"]: span for span in traced}
    statements = [span for span in traced if attribute(span, "db.query.text")]

    def root(span: dict[str, Any]) -> dict[str, Any]:
        parent = by_id.get(span["parentSpanId"])
        return root(parent) if parent else span

    assert statements
    assert {root(span)["parentSpanId"] for span in statements} == {CLIENT}
    assert {attribute(s, "db.system.name") for s in statements} <= {"mysql", "mariadb"}


def test_it_is_explained_from_wherever_it_is(
    stack: Stack, traced: list[dict[str, Any]]
) -> None:
    """By its id alone: OSProfiler's Redis, asked first, has no such trace."""
    words = [TRACE, f"--state={stack.folder}", "--output=json"]
    said = json.loads(CliRunner().invoke(explain.command, words).stdout)

    assert said["call"] == "POST /v3/auth/tokens"
    assert said["categories"]["password_hash"] > 0
    assert len(said["statements"]) > 0


def test_a_point_of_the_latency_leads_to_the_trace(stack: Stack) -> None:
    """Prometheus keeps the trace's id beside the request's duration.

    One export has it, which the next may follow before Prometheus has asked.
    """
    query = {
        "query": "http_server_request_duration_seconds_bucket",
        "start": str(time.time() - 600),
        "end": str(time.time() + 600),
    }
    url = f"{stack.url('prometheus')}/api/v1/query_exemplars"
    deadline = time.monotonic() + PATIENCE_SECONDS
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
