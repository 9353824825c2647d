"""The small service: auth_token in front, a real Keystone behind it, seen from both."""

import json
import time
from typing import Any

import pytest
import requests
from click.testing import CliRunner
from collected import attribute, spans
from traffic import WAKING_CALLS, ask

from keylag.cloud import connect
from keylag.commands import explain
from keylag.commands.common import addresses
from keylag.jtl import Sample
from keylag.services.service import NAME, THREADS
from keylag.stack import Stack

pytestmark = pytest.mark.stack

PROMETHEUS_SECONDS = 60
TRACE, CLIENT = "6b8aa5a2d2c872e8321cf37308d69df2", "051581bf3cb55c13"
BETWEEN = {2, 3}
"""The kinds of spans between processes: a server's and a client's."""
WAY = ["keystone GET", "keylag-service GET", "keylag-service GET", "client"]
"""Upwards from a statement: who serves, who asks it, who serves that one, who asks."""
JUDGED = "keystone_auth_token_validations_total"
SEEN_BY_KEYSTONE = f'sum(keystone_token_validations_total{{keystone_caller="{NAME}"}})'


def test_its_address_is_told(stack: Stack) -> None:
    """`keylag up` prints it beside the others."""
    lines = dict(line.split() for line in addresses(stack) if "source" not in line)

    assert lines["Service"] == stack.url("service")


def test_nobody_passes_without_a_token(stack: Stack) -> None:
    """auth_token answers, and tells where Keystone is."""
    answer = requests.get(stack.url("service"), timeout=30)

    assert answer.status_code == requests.codes.unauthorized
    assert stack.url("keystone") in answer.headers["WWW-Authenticate"]


def test_each_call_tells_what_went_to_authentication(called: list[Sample]) -> None:
    """The answer's own breakdown has auth_token apart from the service."""
    assert len(called) == 20
    for sample in called:
        assert sample.timing is not None
        steps = {operation for _, operation in sample.timing.cells}
        assert steps == {"auth_token", "other"}


def test_every_token_is_judged_once(stack: Stack, called: list[Sample]) -> None:
    """Offline and online together are the calls, and those before them.

    A token is asked about once by each of those who find at the same time that it
    is not cached.  What is online is what Keystone has counted of this caller.
    """
    by_kind = f"sum by (keystone_auth_token_validation) ({JUDGED})"
    calls, tokens = len(called) + WAKING_CALLS, 3 + 1
    deadline = time.monotonic() + PROMETHEUS_SECONDS
    judged: dict[tuple[str, ...], float] = {}
    while sum(judged.values()) < calls and time.monotonic() < deadline:
        judged = ask(stack, by_kind)
        time.sleep(0.2)

    assert sum(judged.values()) == calls
    assert tokens <= judged["online",] <= tokens * THREADS
    assert ask(stack, SEEN_BY_KEYSTONE)[()] == judged["online",]


def test_one_trace_runs_from_the_client_to_the_statements(stack: Stack) -> None:
    """The service, its call to Keystone, Keystone and its SQL are below the client."""
    token = connect(stack.admin()).auth_token
    traceparent = f"00-{TRACE}-{CLIENT}-01"
    headers = {"X-Auth-Token": token, "traceparent": traceparent}
    requests.get(stack.url("service"), headers=headers, timeout=30)
    deadline = time.monotonic() + PROMETHEUS_SECONDS
    ways: list[list[str]] = []
    while WAY not in ways and time.monotonic() < deadline:
        time.sleep(0.2)
        found = {span["spanId"]: span for span in spans(stack, TRACE)}
        statements = [s for s in found.values() if attribute(s, "db.query.text")]
        ways = [_way_up(found.get(s["parentSpanId"]), found) for s in statements]

    assert WAY in ways
    assert_explained(stack)


def assert_explained(stack: Stack) -> None:
    """Of the service's request each moment is told once, on whichever side it was."""
    words = [TRACE, f"--state={stack.folder}", "--output=json"]
    said = json.loads(CliRunner().invoke(explain.command, words).stdout)

    assert said["call"] == f"GET {NAME}"
    assert said["operations"]["auth_token"] > 0
    assert said["operations"]["validate"] > 0
    assert sum(said["categories"].values()) == pytest.approx(
        said["wall_seconds"], rel=0.01
    )


def _way_up(span: dict[str, Any] | None, by_id: dict[str, dict[str, Any]]) -> list[str]:
    """Return whose the spans between processes are, from this one upwards."""
    way = []
    while span:
        if int(span["kind"]) in BETWEEN:
            way.append(f"{span['service']} {span['name'].partition(' ')[0]}")
        if span["parentSpanId"] == CLIENT:
            way.append("client")
        span = by_id.get(span["parentSpanId"])
    return way
