"""L1: the LDAP directory answers slowly."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option, savings
from keylag.diagnosis.rule import Evidence, PerCall, Rule, Suspicion


def _judge(case: Case) -> Suspicion | str:
    found = savings(case, lambda calls: case.excess(calls, ["ldap"]))
    if not found:
        return "Time in LDAP is what it should be, or there is none."
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
    cause="Much of a call's time is in the LDAP directory.",
    judge=_judge,
    asks=(),
    fixes=(
        option("ldap", "use_pool = true", "Connections stay open at the directory."),
        option(
            "ldap",
            "pool_connection_timeout = 5, or connection_timeout if use_pool is false",
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
    gain="The time in LDAP beyond that of the baseline; without one, all of it.",
    threshold="Time in LDAP counts as soon as it is a sixth of a call.",
    panel="tokens: Time per call, by category",
)
