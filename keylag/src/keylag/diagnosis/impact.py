"""Whom a finding hits."""

import math
from dataclasses import dataclass
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.facts import Kind, ratio
from keylag.diagnosis.ranking import Finding
from keylag.diagnosis.service_requests import SERVICE

LABEL: Final = "keystone_caller"
CALLERS_OF: Final = "GET"
"""Keystone measures who validates tokens, and not who logs in."""
UNKNOWN_CALLERS: Final = (
    "Keystone does not measure who logs in or revokes: the access log of its web server"
    " has the addresses."
)


@dataclass(frozen=True)
class Caller:
    """A service that sends calls which a finding hits."""

    kind: Kind
    name: str
    """The service that the caller's user is named after; "other" for all users."""
    per_second: float
    cost: float
    """Seconds per second that its calls would save."""


def callers(case: Case, finding: Finding) -> list[Caller]:
    """Return who sends the calls that a finding hits, the most costly first."""
    if not case.facts.has("validations"):
        return []
    rates = case.facts.by("validations", LABEL)
    whole = math.fsum(rates.values())
    found = [
        Caller(kind, name, rate, ratio(rate, whole) * calls.per_second * saving.mid)
        for kind, saving in finding.suspicion.savings.items()
        if kind[0] == CALLERS_OF and (calls := case.facts.find(kind))
        for name, rate in rates.items()
        if rate
    ]
    return sorted(found, key=lambda one: -one.cost)


def has_unknown_callers(finding: Finding) -> bool:
    """Return whether a finding hits calls whose callers nothing measures."""
    return any(
        method != CALLERS_OF and authentication != SERVICE
        for method, authentication in finding.shares
    )
