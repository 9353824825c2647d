"""C8: somebody empties the cache, or whole regions of it, again and again."""

from dataclasses import replace
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import (
    rebuild_suspicion,
    server_fails,
)
from keylag.diagnosis.facts import ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion

OFTEN: Final = 1 / 60
"""Flushes of memcached per second; with fewer, the cache is warm most of the time."""
FEW_CHANGES: Final = 0.1
"""Share of the busy workers; if fewer make changes, nobody waits for them."""


def _judge(case: Case) -> Suspicion | str:
    if not case.caches:
        return "Keystone has no cache."
    by_region = case.facts.by("invalidations", "keystone_cache_region")
    flushes = _flushes(case)
    if not (flushes or any(by_region.values())):
        return "Nobody invalidated a region of the cache, or flushed memcached."
    flushed = case.misses.flushed_share
    if flushes >= OFTEN:
        flushed += case.misses.lost_share
    if not flushed:
        return "Regions that were invalidated have no misses that cost time."
    if server_fails(case):
        return "The cache server fails: see C2."
    evidence = [Evidence("misses in such regions", flushed, "of all", "memoized", 0)]
    evidence += [
        Evidence(
            f"invalidations of {f'the region {region}' if region else 'all regions'}",
            value,
            "invalidations/s",
            "invalidations",
        )
        for region, value in sorted(by_region.items(), key=lambda one: -one[1])
        if value
    ]
    if flushes:
        text, name = "flushes of memcached", "memcached_flushes"
        evidence.append(Evidence(text, flushes, "flushes/s", name, 0))
    found = rebuild_suspicion(case, evidence, flushed)
    wait = _wait_for_changes(case)
    savings = {
        kind: Saving(one.low, one.mid + wait.mid, one.high + wait.high)
        for kind, one in found.savings.items()
    }
    return replace(found, savings=savings)


def _flushes(case: Case) -> float:
    """Return how often a client flushed memcached per second; 0 if unknown."""
    known = case.facts.has("memcached_flushes")
    return case.facts.number("memcached_flushes") if known else 0.0


def _wait_for_changes(case: Case) -> Saving:
    """Return how long a call waits for workers that make the changes.

    Waits grow faster than the work that causes them, so all may be due to changes.
    """
    busy = 0.0
    if case.facts.has("queue", "other_seconds"):
        busy = ratio(case.facts.number("other_seconds"), case.facts.busy_seconds)
    most = case.queue_seconds if busy >= FEW_CHANGES else 0.0
    return Saving(0.0, busy * most, most)


RULE: Final = Rule(
    id="C8",
    name="cache-flushed",
    cause="The cache is emptied again and again: by changes of roles, projects or"
    " revocations, or by a client that flushes memcached.",
    judge=_judge,
    asks=(
        "invalidations",
        "memcached_flushes",
        "cache_errors",
        "cache_call_buckets",
        "cache_gets",
        "memcached_up",
        "cache_backends",
        "cache_sets",
        "queue",
        "requests",
        "other_seconds",
        "memoized",
    ),
    fixes=(
        Fix(
            "the client that changes roles or deletes tokens",
            "batch the changes, or make them at night",
            "Changes take effect later.",
        ),
        Fix(
            "the client that flushes memcached",
            "leave out flush_all; another application needs a memcached of its own",
            "Its old values stay until they expire.",
        ),
    ),
    gain="The time of the statements that a warm cache saves, and the share of the wait"
    " for a worker that changes have of the workers; at most all of that wait.",
    threshold="The statements per call say what it costs, and misses in regions that"
    " were invalidated are its part. Those of tokens cost nothing (see R3), and the"
    " others count from a tenth of all misses: fewer come from values that expire. If a"
    " client flushes memcached once a minute or more often, all misses count.",
    panel="cache: Invalidations of whole regions",
    explains=("C9",),
)
