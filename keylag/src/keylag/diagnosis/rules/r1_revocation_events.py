"""R1: many live revocation events are compared with each token."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option, savings
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

STEP: Final = ("check_revocation",)


def _judge(case: Case) -> Suspicion | str:
    fetched = case.facts.number("events_fetched")
    calls = sum(one.per_second for one in case.facts.served)
    found = savings(case, lambda one: case.excess(one, operations=STEP))
    if not found:
        return "Revocation checks cost what they should."
    evidence = [
        Evidence(
            "events fetched for each token call",
            fetched / calls if calls else 0.0,
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
    gain="The time of revocation checks beyond that with few events.",
    threshold="Time beyond the expected one counts, if events were fetched.",
    panel="revocation: Live events",
)
