"""H1: a password hash costs more than Keystone's default."""

from collections.abc import Mapping
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option, savings
from keylag.diagnosis.facts import Calls
from keylag.diagnosis.rule import Evidence, Rule, Suspicion

DEFAULT_COSTS: Final = {"bcrypt": 12, "bcrypt_sha256": 12, "scrypt": 16}
"""Keystone's defaults: rounds, or log2 of n; each step doubles the time."""
RATED: Final = ("bcrypt", "bcrypt_sha256")
"""Algorithms whose time depends on that cost alone."""


def _steps_above(labels: Mapping[str, str]) -> float:
    """Return by how many steps a hash exceeds Keystone's default."""
    algorithm = labels["keystone_password_hash_algorithm"]
    cost = float(labels["keystone_password_hash_cost"] or 0)
    return max(cost - DEFAULT_COSTS.get(algorithm, cost), 0.0)


def _judge(case: Case) -> Suspicion | str:
    samples = case.facts.samples("hashes")
    steps = {_steps_above(one.labels) for one in samples}
    others = sorted(
        {one.labels["keystone_password_hash_algorithm"] for one in samples if one.value}
        - set(RATED)
    )
    if not (any(steps) or others):
        return "No hash costs more than Keystone's default."
    hashes = case.facts.number("hashes")
    spent = sum(one.value * 2 ** _steps_above(one.labels) for one in samples)
    share = 1 - hashes / spent if spent else 0.0

    def beyond(calls: Calls) -> float:
        longer = case.excess(calls, ["password_hash"]) if others else 0.0
        return max(share * calls.spent(["password_hash"]), longer)

    evidence = [
        Evidence("doublings beyond Keystone's default", max(steps), "", "hashes", 0),
        Evidence("password hashes", hashes, "hashes/s", "hashes"),
    ]
    evidence += [Evidence(f"algorithm {name}", 1, "", "hashes", 0) for name in others]
    return Suspicion(savings(case, beyond, low=0.8, high=1.1), evidence)


RULE: Final = Rule(
    id="H1",
    name="hash-cost",
    cause="A password hash costs more than Keystone's default.",
    judge=_judge,
    asks=("hashes",),
    fixes=(
        option(
            "identity",
            "password_hash_algorithm = bcrypt",
            "It applies to passwords set from then on; reset the others.",
        ),
        option(
            "identity",
            "password_hash_rounds = 12",
            "Only with bcrypt and bcrypt_sha256: pbkdf2_sha512 would hash twelve times,"
            " which protects nothing. It applies to passwords set from then on; reset"
            " the others. A stolen hash takes proportionally less time to crack.",
        ),
    ),
    gain="The time of hashes, less that of hashes with the default cost: each step"
    " doubles it.",
    threshold="Keystone's default cost is healthy: a lower one is a decision about"
    " security, not about latency. Other algorithms are compared with its time.",
    panel="workers: Time of a hash",
)
