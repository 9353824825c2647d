"""Whom a finding hits: its share of p50 and p95, and the callers.

A cause that hits all calls alike moves the p50 and the p95; one that stalls some moves
the p95 only.  So its share of a quantile is what the quantile exceeds the healthy one
by, times the cause's part of what the mean exceeds the healthy mean by.
"""

import math
from dataclasses import dataclass
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.facts import QUANTILES, Kind, ratio
from keylag.diagnosis.ranking import Finding

LABEL: Final = "keystone_caller"
CALLERS_OF: Final = "GET"
"""Keystone measures who validates tokens, and not who logs in."""
UNKNOWN_CALLERS: Final = (
    "Keystone does not measure who logs in or revokes: its log has the users, and the"
    " access log of its web server the addresses."
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


def quantile_shares(case: Case, finding: Finding, kind: Kind) -> dict[float, float]:
    """Return the cause's least shares of p50 and p95, by their share of the calls.

    One is missing if it or its healthy value is unknown, or if the cause makes calls
    wait before Keystone measures them.
    """
    calls = case.facts.find(kind)
    saving = finding.suspicion.savings.get(kind)
    usual = case.expected.seconds(calls, (), ()) if calls else None
    if calls is None or saving is None or usual is None:
        return {}
    excess = calls.seconds - usual
    if not saving.low <= excess:
        return {}
    part = min(ratio(saving.low, excess), 1.0)
    found = {}
    for share in QUANTILES:
        now, healthy = calls.quantile(share), case.expected.quantile(calls, share)
        if now and healthy is not None:
            found[share] = part * max(now - healthy, 0.0) / now
    return found


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
    return any(kind[0] not in {CALLERS_OF, "service"} for kind in finding.shares)
