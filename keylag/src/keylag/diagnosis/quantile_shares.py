"""The share of a cause in the p50 and the p95 of calls.

A cause that hits all calls alike moves the p50 and the p95; one that stalls some moves
the p95 only.  So its share of a quantile is what the quantile exceeds the healthy one
by, times the cause's part of what the mean exceeds the healthy mean by.
"""

from collections.abc import Mapping
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.facts import QUANTILES, Kind, ratio
from keylag.diagnosis.rule import Saving

P95: Final = 0.95
DOUBLED: Final = 0.5
"""Share of a cause in a quantile that it has doubled."""
FEW_SLOW_CALLS: Final = 5
"""With fewer calls beyond the p95, chance decides what it is."""


def quantile_shares(case: Case, kind: Kind, saving: Saving) -> dict[float, float]:
    """Return the cause's least shares of p50 and p95, by their share of the calls.

    One is missing if it or its healthy value is unknown, or if the cause makes calls
    wait before Keystone measures them.
    """
    calls = case.facts.find(kind)
    usual = case.expected.seconds(calls, (), ()) if calls else None
    if calls is None or usual is None:
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


def doubles_p95(case: Case, savings: Mapping[Kind, Saving]) -> bool:
    """Return whether a cause has doubled the p95 of a kind of calls."""
    return any(
        quantile_shares(case, kind, saving).get(P95, 0.0) >= DOUBLED
        for kind, saving in savings.items()
        if (calls := case.facts.find(kind))
        and calls.per_second * case.facts.window.seconds * (1 - P95) >= FEW_SLOW_CALLS
    )
