"""A fault in Keylag's own code leaves Keystone's responses unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from keystone_client import password

from keylag_otel import request
from keylag_otel.request_aggregator import AGGREGATOR
from keylag_otel.wrappers import before_call

LOG_IN = {"auth": password("admin")}


class InjectedError(Exception):
    """Raised by Keylag's code only."""


def raise_fault(*_: Any, **__: Any) -> Any:
    raise InjectedError


class Unreadable:
    """Raises for any use."""

    __contains__ = __getattr__ = __iter__ = raise_fault


#: Targets in Keylag's code, and the failing objects that replace them.
TARGETS = {
    "the auth methods": ("keylag_otel.authentication.METHODS", Unreadable()),
    "Server-Timing": ("keylag_otel.request.server_timing", raise_fault),
    "the aggregator": (
        "keylag_otel.request_aggregator.RequestAggregator.add",
        raise_fault,
    ),
    "the start of a process": ("keylag_otel.meter_provider.build", raise_fault),
}


def answers(keystone: Any) -> list[tuple[int, Any]]:
    """Keystone's responses to a log-in and a validation, without ids and times."""
    issued = keystone.post("/v3/auth/tokens", json=LOG_IN, buffered=True)
    token = issued.headers["X-Subject-Token"]
    headers = {"X-Auth-Token": token, "X-Subject-Token": token}
    validated = keystone.get("/v3/auth/tokens", headers=headers, buffered=True)
    refused = keystone.get("/v3/auth/tokens", buffered=True)
    return [
        *((each.status_code, timeless(each.json)) for each in (issued, validated)),
        (refused.status_code, refused.json),
    ]


def fails_in_requests(name: str) -> bool:
    return not name.startswith("keylag_otel.meter_provider")


def timeless(answer: Any) -> Any:
    moment = {"issued_at", "expires_at", "audit_ids"}
    return {key: v for key, v in answer["token"].items() if key not in moment}


@pytest.mark.parametrize("where", TARGETS)
def test_faults_leave_responses_unchanged(keystone, monkeypatch, where) -> None:
    expected = answers(keystone)
    name, replacement = TARGETS[where]
    monkeypatch.setattr("keylag_otel.telemetry._State.generation", None)
    monkeypatch.setattr(name, replacement)

    assert answers(keystone) == expected
    # A process that cannot export logs a message instead.
    assert bool(list(AGGREGATOR.counter_values("faults"))) == fails_in_requests(name)


def test_failing_hook_only_counts_a_fault(active_timer) -> None:
    def call(value: str) -> str:
        return value

    place = call.__qualname__
    before = {a["keylag.seam"]: n for n, a in AGGREGATOR.counter_values("faults")}

    assert before_call(raise_fault)(call)("answer") == "answer"

    after = {a["keylag.seam"]: n for n, a in AGGREGATOR.counter_values("faults")}
    assert after[place] == before.get(place, 0) + 1
    assert request.current_timer() is active_timer
