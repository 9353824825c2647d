"""C9: nodes have different lists of cache servers, so they miss each other's values."""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import (
    memcached_is_full,
    option,
    rebuild_suspicion,
    server_fails,
    statements,
)
from keylag.diagnosis.facts import Calls
from keylag.diagnosis.rule import Evidence, Rule, Saving, Suspicion

WARM_WINDOWS: Final = 2
"""A cache is warm when it is this many windows old."""


def _lists(case: Case) -> dict[str, float]:
    """Return the workers by list, of the region with most lists; empty if unknown."""
    regions: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    samples = case.facts.samples("cache_lists") if case.facts.has("cache_lists") else ()
    for one in samples:
        if servers := one.labels.get("keystone_cache_servers"):
            place = one.labels.get("cluster", ""), one.labels.get("region", "")
            regions[place][servers] = one.value
    return max(regions.values(), key=len, default={})


def _stored_elsewhere(lists: Mapping[str, float]) -> float:
    """Return the share of values that workers with another list have stored."""
    workers = math.fsum(lists.values())
    return 1 - math.fsum((one / workers) ** 2 for one in lists.values())


def _saving(calls: Calls, rebuilt: float, elsewhere: float) -> Saving:
    """Return the part of the seconds for rebuilt values that the lists cost.

    A log-in may be the first to need a value, which then is in no server.
    """
    is_first = calls.kind[0] == "POST"
    least, most = (0.0, elsewhere) if is_first else (elsewhere, 1.0)
    return Saving(least * rebuilt, (least + most) / 2 * rebuilt, most * rebuilt)


def _judge(case: Case) -> Suspicion | str:
    if not case.caches:
        return "Keystone has no cache."
    if server_fails(case) or memcached_is_full(case):
        return "The cache server fails or evicts: see C2 and C5."
    lost = case.misses.lost_share
    if not lost:
        return "No region misses that nothing has emptied."
    evidence = [
        Evidence("missed look-ups", case.missed(), "of all", "memoized"),
        Evidence(
            "of them in regions that nothing emptied", lost, "of all", "memoized", 0
        ),
    ]
    lists = _lists(case)
    judge = _judge_by_lists if lists else _judge_by_age
    return judge(case, evidence, lists)


def _judge_by_age(
    case: Case, evidence: list[Evidence], _: Mapping[str, float]
) -> Suspicion | str:
    """Judge without the lists: a cache that is not young should hold the values."""
    age = case.facts.number("memcached_uptime")
    if age < WARM_WINDOWS * case.facts.window.seconds:
        return "memcached has restarted: its cache is still filling."
    return rebuild_suspicion(case, evidence, case.misses.lost_share)


def _judge_by_lists(
    case: Case, evidence: list[Evidence], lists: Mapping[str, float]
) -> Suspicion | str:
    if len(lists) == 1:
        return "All workers have the same list of cache servers."
    shown = [
        Evidence(f"workers with the list {servers}", workers, "workers", "cache_lists")
        for servers, workers in lists.items()
    ]
    elsewhere = _stored_elsewhere(lists)
    found = {
        calls.kind: _saving(calls, rebuilt, elsewhere)
        for calls in case.facts.served
        if (rebuilt := case.misses.lost_share * case.rebuild_seconds(calls))
    }
    return Suspicion(found, [*evidence, *shown, *statements(case)])


RULE: Final = Rule(
    id="C9",
    name="cache-lists-differ",
    cause="Look-ups miss although nothing empties the cache: the nodes' lists of cache"
    " servers differ.",
    judge=_judge,
    asks=(
        "cache_lists",
        "invalidations",
        "cache_sets",
        "memcached_uptime",
        "memoized",
        "memcached_evictions",
        "cache_errors",
        "cache_call_buckets",
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
    threshold="Misses in regions that nobody invalidated count, without evictions or"
    " errors, from a tenth of all misses as in C8. If workers do not report their"
    " lists, a restart within two windows explains misses, too: the cache had less"
    " than a window to fill before this one.",
    panel="cache: Hits by layer",
)
