"""R1: many live revocation events are compared with each token."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option, savings
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

STEP: Final = ("check_revocation",)
EVENT_SECONDS: Final = 0.0002
"""An event takes less, to fetch and to compare; the rest has another cause."""
FETCHES: Final = 2
"""Statements of a validation that fetch events: for its caller, and for its subject."""


def _fetched_per_call(case: Case) -> float:
    return ratio(case.facts.number("events_fetched"), case.facts.calls_per_second)


def _of_events(case: Case, calls: Calls) -> float:
    """Return the time of checks beyond what they take if they fetch no event."""
    usual = case.expected.statements(calls) or 0.0
    fetches = min(max(calls.statements - usual, 0.0), FETCHES)
    in_cache = case.excess(calls, ["cache", "sql_pool"], STEP)
    beyond = case.excess(calls, operations=STEP) - in_cache
    most = _fetched_per_call(case) * case.scaled(EVENT_SECONDS)
    return min(max(beyond - fetches * case.statement_seconds, 0.0), most)


def _judge(case: Case) -> Suspicion | str:
    fetched = _fetched_per_call(case)
    found = savings(case, lambda one: _of_events(case, one), low=0.5)
    if not found:
        return "Revocation checks cost what they should."
    evidence = [
        Evidence(
            "events fetched for each token call",
            fetched,
            "events",
            "events_fetched",
            0,
        )
    ]
    if case.facts.has("live_events"):
        live = case.facts.number("live_events")
        evidence.append(Evidence("live events", live, "events", "live_events"))
    if not fetched:
        return "No revocation event was fetched."
    return Suspicion(found, evidence)


RULE: Final = Rule(
    id="R1",
    name="revocation-events",
    cause="Many live revocation events: each check fetches them and compares them.",
    judge=_judge,
    asks=(
        "events_fetched",
        "live_events",
    ),
    fixes=(
        option(
            "token",
            "expiration = 3600",
            "Clients log in more often; long jobs may lose their token.",
        ),
        Fix(
            "the client that deletes tokens",
            "reuse the token instead of a log-out after each request",
            "A token that is not revoked stays valid until it expires.",
        ),
    ),
    gain="The time of revocation checks beyond that of a warm cache, less the statement"
    " that a check sends if there are no events.",
    threshold="Time beyond the expected one counts, if events were fetched, and at"
    " most 0.2 ms for each, scaled by the machine's speed: to fetch and to compare an"
    " event takes less, and the rest has another cause. Up to two fetches are left"
    " out, for a validation's caller and its subject: after each log-out Keystone 30"
    " fetches the events anew, however few they are.",
    panel="revocation: Live events",
    explains=("D2",),
)
