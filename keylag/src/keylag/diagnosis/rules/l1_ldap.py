"""L1: the LDAP directory answers slowly."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option, savings
from keylag.diagnosis.rule import Evidence, PerCall, Rule, Suspicion


def _judge(case: Case) -> Suspicion | str:
    found = savings(case, lambda calls: case.excess(calls, ["ldap"]))
    if not found:
        return "No time passes in LDAP."
    evidence = [
        Evidence(
            f"time in LDAP of {calls.kind[0]}",
            calls.spent(["ldap"]),
            "s",
            "cells",
            per_call=PerCall(calls.kind, phases=("ldap",)),
        )
        for calls in case.facts.served
        if calls.kind in found
    ]
    return Suspicion(found, evidence)


RULE: Final = Rule(
    id="L1",
    name="ldap",
    cause="The LDAP directory answers slowly.",
    judge=_judge,
    asks=(),
    fixes=(
        option("ldap", "use_pool = true", "Connections stay open at the directory."),
        option(
            "ldap",
            "connection_timeout = 5",
            "Log-ins fail instead of waiting while the directory is away.",
        ),
        option(
            "ldap",
            "page_size = 0",
            "The directory may refuse to return so many entries at once.",
        ),
        option(
            "ldap",
            "user_filter = a narrower one",
            "Users outside of the filter cannot log in.",
        ),
    ),
    gain="The time in LDAP beyond that of the baseline.",
    threshold="Time in LDAP counts as soon as it is a sixth of a call.",
    panel="tokens: Time per call, by category",
)
