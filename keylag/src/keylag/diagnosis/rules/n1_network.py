"""N1: time passes before Keystone: name look-up, connection, TLS or a slow way."""

from collections.abc import Mapping
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion

HOPS: Final = ("resolve", "connect", "tls", "transfer")
NEAR_SECONDS: Final = 0.002
"""All hops of a client in the same data centre."""


def _way_seconds(case: Case, hops: Mapping[str, float]) -> float:
    """Return the time of a probe on its way to Keystone and back.

    It is in the wait for the first byte.  The quickest probe waited in no queue, so
    what it waited beyond Keystone's own time is the way, or a proxy that held it back.
    """
    calls = case.facts.number("probed_calls")
    if not calls:
        way = min(hops.get("processing", 0.0), hops.get("connect", 0.0))
        return max(way - NEAR_SECONDS / 2, 0.0)
    own = case.facts.number("probed_seconds") / calls
    buckets = case.facts.buckets("probe_buckets", phase="processing")
    return max(_quickest(buckets) - own - NEAR_SECONDS, 0.0)


def _quickest(buckets: Mapping[float, float]) -> float:
    """Return what the quickest one took at least: the bounds below it are empty."""
    if not any(buckets.values()):
        return 0.0
    return max((bound for bound, count in buckets.items() if not count), default=0.0)


def _judge(case: Case) -> Suspicion | str:
    probes = case.facts.number("probes")
    if not probes:
        return "No probe ended in this time."
    hops = {
        name: seconds / probes
        for name, seconds in case.facts.by("probe_seconds", "phase").items()
    }
    outside = max(sum(hops.get(name, 0.0) for name in HOPS) - NEAR_SECONDS, 0.0)
    way = _way_seconds(case, hops)
    lost = outside + way
    # Clients that keep their connection lose the way only.
    saving = Saving(0.3 * outside + 0.8 * way, lost, 1.2 * lost)
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
    threshold="2 ms for all hops of a client in the same data centre.",
    panel="workers: Waiting connections",
)
