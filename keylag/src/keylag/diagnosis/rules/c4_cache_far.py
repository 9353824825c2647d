"""C4: each call to the cache server takes long, because it is far away."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import (
    memcached_refuses,
    option,
    savings,
    server_fails,
)
from keylag.diagnosis.facts import Calls, ratio
from keylag.diagnosis.rule import Evidence, Rule, Suspicion

ONE_MODE: Final = 0.5
"""The median is at least this part of the mean if all calls are slow alike."""


def _judge(case: Case) -> Suspicion | str:
    if not case.caches:
        return "Keystone has no cache."
    if server_fails(case) or memcached_refuses(case):
        return "Calls to the cache server fail: see C2 and C6."
    buckets = case.facts.buckets("cache_call_buckets")
    calls = max(buckets.values(), default=0.0)
    if not calls:
        return "No call went to the cache server."
    mean = case.facts.number("cache_call_seconds") / calls
    median = case.cache_quantile(0.5) or 0.0
    if median < ONE_MODE * mean:
        return "Most calls to the cache server are fast; a few are slow."

    def distance(one: Calls) -> float:
        usual = case.expected.seconds(one, ["cache"], ())
        if not usual:
            return 0.0
        trips = max(ratio(one.round_trips, case.expected.round_trips(one) or 0.0), 1.0)
        return max(one.spent(["cache"]) - trips * usual, 0.0) * (
            1 - case.cpu_wait_share
        )

    evidence = [
        Evidence(
            "median of a call to the cache server",
            median,
            "s",
            "cache_call_buckets",
        ),
        Evidence("mean of a call to the cache server", mean, "s", "cache_call_seconds"),
    ]
    return Suspicion(savings(case, distance, low=0.7, high=1.1), evidence)


RULE: Final = Rule(
    id="C4",
    name="cache-far",
    cause="The cache server is far away: each call to it takes long.",
    judge=_judge,
    asks=(
        "cache_call_buckets",
        "cache_call_seconds",
        "cpu_wait_seconds",
        "memcached_connections",
        "memcached_refusals",
        "memcached_full",
        "cache_errors",
        "cache_gets",
        "cache_sets",
        "memcached_up",
        "cache_backends",
        "other_seconds",
    ),
    fixes=(
        option(
            "cache",
            "memcache_servers = a server in the same rack or host",
            "All nodes need the same list; the cache is empty at first.",
        ),
    ),
    gain="Calls to the cache per token call, times the time of each beyond that of a"
    " near server.",
    threshold="The median of a call is at least half of the mean: calls that are slow"
    " alike have one mode, with both close together. Otherwise a few calls stall,"
    " which is C2.",
    panel="cache: Time per round trip",
)
