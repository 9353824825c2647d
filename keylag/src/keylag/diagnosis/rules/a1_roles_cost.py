"""A1: finding the roles of a token costs more than it should."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import name_kind, savings
from keylag.diagnosis.facts import Calls
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

STEP: Final = ("roles",)


def _judge(case: Case) -> Suspicion | str:
    def beyond(calls: Calls) -> float:
        rebuilt = case.rebuild_seconds(calls)
        return max(case.excess(calls, operations=STEP) - rebuilt, 0.0)

    found = savings(case, beyond)
    evidence = [
        Evidence(
            f"time for the roles of {name_kind(calls.kind)}",
            calls.spent(operations=STEP),
            "s",
            "cells",
            case.expected.seconds(calls, (), STEP),
        )
        for calls in case.facts.served
        if calls.kind in found
    ]
    return Suspicion(found, evidence) if found else "Roles cost what they should."


RULE: Final = Rule(
    id="A1",
    name="roles-cost",
    cause="Finding the roles of a token takes long.",
    judge=_judge,
    asks=(),
    fixes=(
        Fix(
            "Keystone",
            "upgrade: later releases cache the roles of trusts and work them out once",
            "That of an upgrade.",
        ),
        Fix(
            "role assignments",
            "fewer implied and inherited roles, fewer groups of a user",
            "Users may lose roles: check with `openstack role assignment list"
            " --effective`.",
        ),
    ),
    gain="The time of the step `roles` beyond that of a healthy Keystone.",
    threshold="Time beyond the expected one counts, on a machine of the same speed.",
    panel="tokens: Time per call, by category",
)
