"""OpenTelemetry traces of a call whose client has a trace context."""

import json
import time
from typing import Any

import pytest
from click.testing import CliRunner
from collector_spans import attribute, spans
from traced_calls import CLIENT, TRACE, log_in, send_until_exemplar

from keylag.commands import explain
from keylag.stack import Stack

pytestmark = pytest.mark.stack

TIMEOUT_SECONDS = 60


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
    assert TRACE in send_until_exemplar(stack)
