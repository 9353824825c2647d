"""N1: time passes before Keystone: name look-up, connection, TLS or a slow way."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion

HOPS: Final = ("resolve", "connect", "tls", "transfer")
NEAR_SECONDS: Final = 0.002
"""All hops of a client in the same data centre."""


def _judge(case: Case) -> Suspicion | str:
    probes = case.facts.number("probes")
    if not probes:
        return "No probe ended in this time."
    hops = {
        name: seconds / probes
        for name, seconds in case.facts.by("probe_seconds", "phase").items()
    }
    outside = sum(hops.get(name, 0.0) for name in HOPS)
    # The way to Keystone and back is in the wait for the first byte, too.
    waited = hops.get("processing", 0.0)
    way = max(min(waited, hops.get("connect", 0.0)) - NEAR_SECONDS / 2, 0.0)
    lost = max(outside - NEAR_SECONDS, 0.0) + way
    waits = {one.kind: Saving.about(lost, low=0.3) for one in case.facts.served}
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
