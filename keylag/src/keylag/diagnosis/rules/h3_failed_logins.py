"""H3: a client with an old password keeps workers busy; each attempt costs a hash."""

import math
from collections.abc import Sequence
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion

LEAST: Final = 0.7
"""Lower bound of a wait, as a share of its estimate."""


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
    part = _part_of_waits(case, refused)
    waits = {
        one.kind: Saving(LEAST * part * wait, part * wait, wait)
        for one in case.facts.served
        if (wait := queue + case.cpu_wait_share * one.seconds)
    }
    return Suspicion(waits, evidence, worker_seconds=seconds)


def _part_of_waits(case: Case, refused: Sequence[Calls]) -> float:
    """Return which part of other calls' waits refused log-ins cause.

    By the formula of Pollaczek and Khinchine, a wait grows with the second moment of
    the service times: who finds a worker busy finds it in a long call.
    """

    def moment(calls: Sequence[Calls]) -> float:
        return math.fsum(one.per_second * one.seconds**2 for one in calls)

    return ratio(moment(refused), moment(case.facts.calls))


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
            "its new password; Keystone's log has its address, or that of a proxy"
            " without [oslo_middleware] enable_proxy_headers_parsing",
            "None.",
        ),
        option(
            "security_compliance",
            "lockout_failure_attempts = 6",
            "Anybody can lock an account by wrong passwords.",
        ),
    ),
    gain="The workers' time in refused log-ins, and the part of other calls' waits that"
    " they cause, by their second moment among all calls.",
    threshold="A sixth of the busy workers' time, as for all causes.",
    panel="tokens: Failed authentications",
    explains=("H2", "W1", "W2", "N1"),
)
