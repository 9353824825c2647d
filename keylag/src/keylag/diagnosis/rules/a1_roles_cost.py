"""A1: finding the roles of a token costs more than it should."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import step_suspicion
from keylag.diagnosis.rule import Fix, Rule, Suspicion

STEPS: Final = ("roles",)


def _judge(case: Case) -> Suspicion | str:
    return step_suspicion(case, STEPS, "the roles")


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
