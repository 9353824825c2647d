"""N1: time passes before Keystone: name look-up, connection, TLS or a slow way."""

import math
from collections.abc import Mapping
from typing import Final

from keylag.diagnosis.case import BUSY, Case
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion

HOPS: Final = ("resolve", "connect", "tls", "transfer")
NEAR_SECONDS: Final = 0.002
"""All hops of a client in the same data centre."""


ENOUGH_PROBES: Final = 20
"""Fewer of them may all meet long calls."""


def _way_seconds(case: Case, hops: Mapping[str, float]) -> tuple[float, float]:
    """Return the time of a probe on its way to Keystone and back: at least, at most.

    It is in the wait for the first byte.  The quickest probe waited in no queue while
    some worker was free, so what it waited beyond Keystone's own time is the way, or a
    proxy that held it back.
    """
    calls = case.facts.number("probed_calls")
    if not calls:
        way = min(hops.get("processing", 0.0), hops.get("connect", 0.0))
        return (max(way - NEAR_SECONDS / 2, 0.0),) * 2
    own = case.facts.number("probed_seconds") / calls
    buckets = case.facts.buckets("probe_buckets", phase="processing")
    waited = _wait_of_quickest(case) if case.busy_share > BUSY else 0.0
    usual = waited + own + NEAR_SECONDS
    least, most = (max(one - usual, 0.0) for one in _quickest(buckets))
    return (least, most) if least else (0.0, 0.0)


def _wait_of_quickest(case: Case) -> float:
    """Return what the quickest probe waits for a worker while all are busy.

    For those before it, and for the first worker that ends its call, which is a long
    one if any; twice as long as the quickest of so many probes waits on average.
    Few probes may all wait for a whole call.
    """
    probes = case.facts.number("probes") * case.facts.window.seconds
    workers = case.facts.number("workers")
    longest = max((one.seconds for one in case.facts.calls), default=0.0)
    share = 2 / ((workers + 1) * probes) if probes >= ENOUGH_PROBES else 1.0
    return case.queue_seconds + share * longest


def _quickest(buckets: Mapping[float, float]) -> tuple[float, float]:
    """Return what the quickest one took, at least and at most."""
    filled = [bound for bound, count in buckets.items() if count]
    empty = [bound for bound, count in buckets.items() if not count]
    if not filled:
        return 0.0, 0.0
    least = max(empty, default=0.0)
    return least, min(filled) if math.isfinite(min(filled)) else least


def _judge(case: Case) -> Suspicion | str:
    probes = case.facts.number("probes")
    if not probes:
        return "No probe ended in this time."
    hops = {
        name: seconds / probes
        for name, seconds in case.facts.by("probe_seconds", "phase").items()
    }
    outside = max(sum(hops.get(name, 0.0) for name in HOPS) - NEAR_SECONDS, 0.0)
    least, most = _way_seconds(case, hops)
    # Clients that keep their connection lose the way only.
    saving = Saving(
        0.3 * outside + 0.8 * least,
        outside + (least + most) / 2,
        1.2 * (outside + most),
    )
    waits = {one.kind: saving for one in case.facts.served}
    evidence = [
        Evidence(f"probe: {name}", seconds, "s", "probe_seconds")
        for name, seconds in hops.items()
    ]
    return Suspicion(waits, evidence)


RULE: Final = Rule(
    id="N1",
    name="network",
    cause="Time passes before Keystone: in the name look-up, the connection, TLS or on"
    " the way.",
    judge=_judge,
    asks=(
        "probes",
        "probe_seconds",
        "probe_buckets",
        "probed_calls",
        "probed_seconds",
        "queue",
        "requests",
        "workers",
        "other_seconds",
    ),
    fixes=(
        Fix(
            "the hop that the probe names",
            "a near resolver, keep-alive at the load balancer, a nearer endpoint",
            "Those of a change in the network.",
        ),
    ),
    gain="The probe's time outside of Keystone beyond that in one data centre; clients"
    " that keep their connection lose less.",
    threshold="2 ms for the four hops of a client in the same data centre, half a"
    " millisecond for each; as much for the first byte beyond Keystone's own time, or"
    " half of it if only the connection tells. From 80 % busy workers on, probes"
    " queue, and that wait is not the network's. Of 20 probes the quickest waits for a"
    " twentieth of a call at most; fewer may all wait for a whole one.",
    panel="workers: Waiting connections",
)
