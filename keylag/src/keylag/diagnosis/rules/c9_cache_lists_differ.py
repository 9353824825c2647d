"""C9: nodes have different lists of cache servers, so they miss each other's values."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import (
    memcached_is_full,
    option,
    rebuild_suspicion,
    server_fails,
)
from keylag.diagnosis.rule import Evidence, Rule, Suspicion

WARM_WINDOWS: Final = 2
"""A cache is warm when it is this many windows old."""


def _judge(case: Case) -> Suspicion | str:
    if not case.caches:
        return "Keystone has no cache."
    if server_fails(case) or memcached_is_full(case):
        return "The cache server fails or evicts."
    lost = case.misses.lost_share
    if not lost:
        return "No region misses that nothing has emptied."
    age = case.facts.number("memcached_uptime")
    if age < WARM_WINDOWS * case.facts.window.seconds:
        return "memcached has restarted: its cache is still filling."
    evidence = [
        Evidence("missed look-ups", case.missed(), "of all", "memoized"),
        Evidence("of them in regions that nothing emptied", lost, "", "memoized", 0),
    ]
    return rebuild_suspicion(case, evidence, lost)


RULE: Final = Rule(
    id="C9",
    name="cache-lists-differ",
    cause="Look-ups miss although nothing empties the cache: the nodes' lists of cache"
    " servers differ.",
    judge=_judge,
    asks=(
        "invalidations",
        "cache_sets",
        "memcached_uptime",
        "memoized",
        "memcached_evictions",
        "cache_errors",
        "cache_gets",
        "memcached_up",
        "cache_backends",
    ),
    fixes=(
        option(
            "cache",
            "memcache_servers = the same list, in the same order, on all nodes",
            "The cache is empty at first.",
        ),
    ),
    gain="The time of the statements that a warm cache saves.",
    threshold="Misses in regions that nobody invalidated count, without evictions,"
    " errors, or a restart within two windows.",
    panel="cache: Hits by layer",
)
