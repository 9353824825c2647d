"""H3: a client with an old password keeps workers busy; each attempt costs a hash."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option
from keylag.diagnosis.facts import ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion


def _judge(case: Case) -> Suspicion | str:
    reasons = case.facts.by("failures", "error_type")
    refused = [one for one in case.facts.refused if one.kind[0] == "POST"]
    seconds = sum(one.per_second * one.seconds for one in refused)
    if not seconds:
        return "No log-in was refused."
    share = ratio(seconds, case.facts.busy_seconds)
    evidence = [
        Evidence(f"refused log-ins: {reason}", value, "failures/s", "failures", 0)
        for reason, value in sorted(reasons.items(), key=lambda one: -one[1])
        if value
    ]
    evidence.append(
        Evidence("their share of the busy workers", share, "of the time", "cells", 0)
    )
    queue = case.queue_seconds if case.facts.has("queue") else 0.0
    waits = {
        one.kind: Saving(share * wait / 2, share * wait, wait)
        for one in case.facts.served
        if (wait := queue + case.cpu_wait_share * one.seconds)
    }
    return Suspicion(waits, evidence, worker_seconds=seconds)


RULE: Final = Rule(
    id="H3",
    name="failed-logins",
    cause="Somebody logs in with a wrong password again and again: each attempt costs a"
    " full hash, and other calls wait for the workers.",
    judge=_judge,
    asks=(
        "failures",
        "queue",
        "requests",
        "cpu_wait_seconds",
        "other_seconds",
    ),
    fixes=(
        Fix(
            "the client with the old secret",
            "its new password; Keystone's log has its address and user",
            "None.",
        ),
        option(
            "security_compliance",
            "lockout_failure_attempts = 6",
            "Anybody can lock an account by wrong passwords.",
        ),
    ),
    gain="The workers' time in refused log-ins, and its share of other calls' waits.",
    threshold="A sixth of the busy workers' time, as for all causes.",
    panel="tokens: Failed authentications",
    explains=("H2", "W1", "W2", "N1"),
)
