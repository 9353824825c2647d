"""C7: with Redis, Keystone looks up the same value several times in a request."""

from typing import Final

from keylag.diagnosis.case import REDIS, Case
from keylag.diagnosis.common import option, savings, with_memcached
from keylag.diagnosis.facts import Calls
from keylag.diagnosis.rule import Evidence, PerCall, Rule, Suspicion

MANY: Final = 2.0
"""Redis needs three to six times memcached's round trips; memcached at most this."""


def _extra(case: Case, calls: Calls) -> float:
    """Return the time of the round trips that memcached would not need."""
    usual = case.expected.round_trips(calls)
    if not usual or calls.round_trips < MANY * usual:
        return 0.0
    return calls.spent(["cache"]) * (1 - usual / calls.round_trips)


def _judge(case: Case) -> Suspicion | str:
    if not any(REDIS in one or "valkey" in one for one in case.backends):
        return "The cache is not Redis."
    evidence = [
        Evidence(
            f"calls to the cache of {calls.kind[0]}",
            calls.round_trips,
            "calls",
            "round_trips",
            case.expected.round_trips(calls),
            PerCall(calls.kind),
        )
        for calls in case.facts.served
    ]
    return Suspicion(
        savings(case, lambda calls: _extra(case, calls), low=0.4), evidence
    )


RULE: Final = Rule(
    id="C7",
    name="cache-redis-bypass",
    cause="With Redis, Keystone bypasses its request-local cache: it asks for the same"
    " value several times in a request.",
    judge=_judge,
    asks=("cache_backends",),
    fixes=(
        option(
            "cache",
            "backend = oslo_cache.memcache_pool",
            "memcached keeps nothing over a restart.",
        ),
    ),
    gain="The time in the cache, for the round trips that memcached would not need.",
    threshold="Twice the round trips of memcached, which needs at most this; Redis"
    " needs three to six times as many, as measured.",
    panel="cache: Look-ups by layer",
    fixed_options=with_memcached,
)
