"""M2: the memcached of a service's token cache stalls, or is down."""

from dataclasses import replace
from typing import Final

from keylag.diagnosis.case import STALL_SECONDS, Case, most_fast_seconds, slow_part
from keylag.diagnosis.facts import ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion
from keylag.diagnosis.rules.m1_token_cache import (
    WAITING,
    lost_by_cache,
    validations,
)
from keylag.diagnosis.service_requests import ServiceRequests, find_service_requests

CACHE: Final = "cache"
"""The phase of a service's requests that waits for its token cache."""


def _judge(case: Case) -> Suspicion | str:
    buckets = case.facts.buckets("service_cache_buckets")
    stalls, seconds = slow_part(buckets, STALL_SECONDS)
    services = find_service_requests(case.facts)
    missing = lost_by_cache(case)
    if not services or not (stalls or missing):
        return "No call to a token cache stalled, and it loses no token."
    whole = max(case.facts.number("service_cache_seconds"), seconds) if stalls else 0.0
    # What the other calls take at most, no stall took.
    surely = max(whole - most_fast_seconds(buckets, STALL_SECONDS), seconds)
    part_missing = ratio(missing, validations(case).get("online", 0.0))
    in_cache = case.facts.by("service_cells", "keystone_phase").get(CACHE, 0.0)

    def saving(one: ServiceRequests) -> Saving:
        """Return what a method saves: its part of the time in the cache has stalls."""
        stalled = ratio(one.phases.get(CACHE, 0.0), in_cache)
        lost = stalled * whole + part_missing * one.phases.get(WAITING, 0.0)
        found = Saving.about(lost)
        return replace(found, low=max(found.low, stalled * surely))

    evidence = [
        Evidence(
            f"calls to the token cache over {STALL_SECONDS:g} s",
            stalls,
            "calls/s",
            "service_cache_buckets",
            0,
        ),
        Evidence(
            "validations of tokens that it should have",
            missing,
            "/s",
            "service_replayed",
            0,
        ),
        Evidence(
            "failed calls to the token cache",
            case.facts.number("service_cache_errors"),
            "errors/s",
            "service_cache_errors",
            0,
        ),
    ]
    return Suspicion({one.kind: saving(one) for one in services}, evidence)


RULE: Final = Rule(
    id="M2",
    name="token-cache-stall",
    cause="The memcached of services' token caches stalls or is down: they wait for it,"
    " and validate in Keystone what they had cached.",
    judge=_judge,
    asks=(
        "service_cache_buckets",
        "service_requests",
        "service_cache_seconds",
        "service_seconds",
        "service_cache_errors",
        "service_cache_time",
        "service_cells",
        "service_replayed",
        "service_validations",
    ),
    fixes=(
        Fix(
            "the service's [keystone_authtoken]",
            "memcache_pool_socket_timeout = 1, memcache_use_advanced_pool = true",
            "A memcached that is only slow counts as dead sooner. The option takes"
            " whole seconds.",
        ),
    ),
    gain="The time of services in their token cache, and in validations of tokens that"
    " it should have.",
    threshold="A call over 0.1 s is a stall, as in C2; a client skips a dead server for"
    " minutes, and then only misses show it.",
    panel="services: Stalls",
    explains=("M1",),
)
