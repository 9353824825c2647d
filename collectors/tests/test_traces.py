"""The trace of a request to a real Keystone equals its metrics."""

from __future__ import annotations

import re
import socket
from typing import Any

import pytest
from cache_backends import BACKENDS
from keystone_client import Breakdown, Keystone, password
from keystone_site import Site
from span_collector import Span, Traces, cells

#: The expectations are those of Keystone 30.
pytestmark = pytest.mark.newest

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLER = {"Traceparent": f"00-{TRACE}-{SPAN}-01"}
FEW_HUNDRED = 400


def drive(keystone: Keystone) -> dict[str, tuple[list[Span], Breakdown]]:
    """Trace a cold and a warm call of each kind, each with its metrics."""
    from opentelemetry.sdk.trace.sampling import DEFAULT_OFF

    traces = Traces(DEFAULT_OFF)
    found = {}
    for state in ("cold", "warm"):
        issued = keystone.issue(password("admin"), **CALLER)
        found[f"issue {state}"] = (traces.taken(), issued.breakdown)
    headers = {"X-Subject-Token": issued.token, **CALLER}
    for state in ("cold", "warm"):
        validated = keystone.call(
            "GET", "/v3/auth/tokens", None, issued.token, **headers
        )
        found[f"validate {state}"] = (traces.taken(), validated.breakdown)
    keystone.validate(issued.token)
    assert traces.taken() == []
    return found


def empty(port: int) -> None:
    """Empty a memcached."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"flush_all\r\n")
        assert connection.recv(64) == b"OK\r\n"


@pytest.fixture(scope="module")
def traced(processes, prepared, tmp_path_factory, memcached) -> dict[str, Any]:
    empty(memcached)
    site = Site(processes, prepared, tmp_path_factory.mktemp("traces"))
    options = BACKENDS["memcache_pool"].configuration(memcached)
    seen: dict[str, Any] = site.run(drive, options=options)
    return seen


@pytest.fixture(params=["validate cold", "validate warm", "issue cold", "issue warm"])
def call(traced, request) -> tuple[list[Span], Breakdown]:
    """The spans and the breakdown of each call."""
    found: tuple[list[Span], Breakdown] = traced[request.param]
    return found


def test_the_spans_add_up_to_the_metrics(call) -> None:
    spans, breakdown = call

    assert cells(spans) == pytest.approx(breakdown.cells, abs=1e-9)


def test_trace_is_within_the_span_limit(call) -> None:
    spans, _ = call

    assert 20 < len(spans) <= FEW_HUNDRED


def test_statements_and_cache_calls_have_spans(call) -> None:
    spans, breakdown = call
    asked = [s["attributes"] for s in spans if s["kind"] == "CLIENT"]
    calls = {
        system: sum(
            each.get("keystone.calls", 1)
            for each in asked
            if each["db.system.name"] == system
        )
        for system in ("sqlite", "memcached")
    }

    assert calls == {
        "sqlite": breakdown.counts["sql_statements"],
        "memcached": breakdown.counts["cache_calls"],
    }


def test_statement_span_has_summary_without_values(traced) -> None:
    spans, _ = traced["issue cold"]
    text = next(
        span["attributes"]["db.query.text"]
        for span in spans
        if span["name"].startswith("SELECT user ")
    )

    assert re.search(r"WHERE .* = \?", text, re.DOTALL)


def test_memoized_function_span_has_its_result(traced) -> None:
    results = {
        state: {
            span["attributes"]["keystone.cache.result"]
            for span in traced[f"issue {state}"][0]
            if span["attributes"].get("keystone.cache.function")
            == "keystone.assignment.core:get_role"
        }
        for state in ("cold", "warm")
    }

    assert results == {"cold": {"hit", "miss"}, "warm": {"hit"}}


def test_steps_of_keystone_are_named_after_what_was_called(traced) -> None:
    spans, _ = traced["issue warm"]

    assert {
        "authenticate_for_token",
        "check_password",
        "Manager.issue_token",
        "TokenFormatter.create_token",
        "render_token_response_from_model",
    } <= {span["name"] for span in spans}
