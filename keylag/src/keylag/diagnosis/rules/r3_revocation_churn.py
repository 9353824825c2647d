"""R3: a client revokes its token after each request."""

import math
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import REVOKES
from keylag.diagnosis.facts import ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion

LOGGED_OUT: Final = 0.6
"""Share of issued tokens that are revoked, even if that was chance.

Clients that log out after each use revoke nearly all; people who log out of a dashboard
share a Keystone with services, whose tokens expire.
"""
DEVIATIONS: Final = 2.0
"""Standard deviations of a count by which chance may have raised it."""


def _judge(case: Case) -> Suspicion | str:
    written = case.facts.number("events_written")
    logouts = [one for one in case.facts.served if one.kind[0] == REVOKES]
    logins = [one for one in case.facts.served if one.kind[0] == "POST"]
    revoked = sum(one.per_second for one in logouts)
    issued = sum(one.per_second for one in logins)
    counted = revoked * case.facts.window.seconds
    at_least = max(counted - DEVIATIONS * math.sqrt(counted), 0.0)
    if at_least <= LOGGED_OUT * issued * case.facts.window.seconds:
        share = ratio(revoked, issued)
        return f"{share:.0%} of the issued tokens are revoked." if issued else "None."
    share = min(revoked / issued, 1.0) if issued else 1.0
    # A log-out writes, and a slow database is another cause.
    seconds = sum(
        one.per_second * min(case.usual_seconds(one), one.seconds - one.spent(["sql"]))
        for one in logouts
    )
    again = sum(one.per_second * case.usual_seconds(one) for one in logins)
    seconds += share * again
    # Other regions' misses have other causes.
    part = 0.0 if case.misses.cost_time else 1.0
    rebuilt = {
        one.kind: Saving.about(part * case.rebuild_seconds(one))
        for one in case.facts.served
    }
    evidence = [
        Evidence("revoked tokens", revoked, "calls/s", "calls"),
        Evidence("issued tokens", issued, "calls/s", "calls"),
        Evidence("events written", written, "events/s", "events_written"),
    ]
    return Suspicion(rebuilt, evidence, worker_seconds=seconds)


RULE: Final = Rule(
    id="R3",
    name="revocation-churn",
    cause="A client revokes its token after each use: each time it logs in again, and"
    " the cache of tokens is emptied for everybody.",
    judge=_judge,
    asks=("events_written", "cache_sets", "invalidations", "memoized"),
    fixes=(
        Fix(
            "the client",
            "reuse the token, and let it expire",
            "A token that is not revoked stays valid until it expires.",
        ),
    ),
    gain="The workers' time that log-outs and the log-ins after them take on a healthy"
    " Keystone, and the statements that a warm cache saves.",
    threshold="More than 60 % of the issued tokens are revoked: clients that log out"
    " after each use revoke nearly all, while services let theirs expire. Two standard"
    " deviations of their count are left out, as chance may add them.",
    panel="revocation: Events written",
    explains=("C8", "C9", "H2"),
)
