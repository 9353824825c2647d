"""M2: a service waits for the memcached of its token cache."""

from typing import Final

from keylag.diagnosis.case import STALL_SECONDS, Case, slow_part
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion
from keylag.diagnosis.rules.m1_token_cache import SERVICE


def _judge(case: Case) -> Suspicion | str:
    buckets = case.facts.buckets("service_cache_buckets")
    stalls, seconds = slow_part(buckets, STALL_SECONDS)
    requests = case.facts.number("service_requests")
    if not stalls or not requests:
        return "No call to a token cache stalled."
    lost = max(case.facts.number("service_cache_seconds"), seconds) / requests
    evidence = [
        Evidence(
            f"calls to the token cache over {STALL_SECONDS:g} s",
            stalls,
            "calls/s",
            "service_cache_buckets",
            0,
        )
    ]
    return Suspicion({SERVICE: Saving.about(lost)}, evidence)


RULE: Final = Rule(
    id="M2",
    name="token-cache-stall",
    cause="Services wait for the memcached of their token cache.",
    judge=_judge,
    asks=(
        "service_cache_buckets",
        "service_requests",
        "service_cache_seconds",
    ),
    fixes=(
        Fix(
            "the service's [keystone_authtoken]",
            "memcache_pool_socket_timeout = 0.25, memcache_use_advanced_pool = true",
            "A memcached that is only slow counts as dead sooner.",
        ),
    ),
    gain="The time of services in their token cache.",
    threshold="A call over 0.1 s is a stall, as in C2.",
    panel="services: Stalls",
    explains=("M1",),
)
