"""C1: Keystone does not cache, so each call reads everything from the database."""

from typing import Final

from keylag.diagnosis.case import DATABASE_PHASES, NO_CACHE, Case
from keylag.diagnosis.common import (
    option,
    savings,
    server_fails,
    statements,
    with_memcached,
)
from keylag.diagnosis.facts import Calls
from keylag.diagnosis.from_configuration import CACHED_SECTIONS
from keylag.diagnosis.rule import Evidence, Rule, Suspicion

CACHED: Final = (*CACHED_SECTIONS, "revoke")
"""Sections whose option `caching` token calls depend on."""
CHECK: Final = ("check_revocation",)
"""The operation that reads revocation events, which [revoke] caches."""
SHORT_SECONDS: Final = 60
"""Values that live shorter are gone when a service asks again: it polls each minute."""


def _judge(case: Case) -> Suspicion | str:
    if case.caches:
        return _judge_sections(case)
    evidence = [*statements(case)]
    if case.facts.has("cache_backends"):
        backends = case.facts.by("cache_backends", "keystone_cache_backend")
        workers = sum(backends.get(name, 0.0) for name in NO_CACHE)
        evidence.insert(
            0,
            Evidence(
                "workers without a cache", workers, "workers", "cache_backends", 0
            ),
        )

    def spared(calls: Calls) -> float:
        lookups = case.expected.seconds(calls, ["cache"], ()) or 0.0
        return max(case.rebuild_seconds(calls) - lookups, 0.0)

    return Suspicion(savings(case, spared), evidence)


def _judge_sections(case: Case) -> Suspicion | str:
    """Judge a Keystone that has a cache, by what is not stored in it."""
    caching = {name: case.facts.configuration.find(name, "caching") for name in CACHED}
    off = [name for name, found in caching.items() if found and found.is_false]
    expiring = _short_lifetimes(case) if case.misses.lost_share else {}
    if not (off or case.misses.unstored or expiring):
        return "Keystone has a cache, and stores in it what it reads."
    if case.facts.has("cache_errors") and server_fails(case):
        return "The cache server fails: see C2."
    evidence = [Evidence(f"[{name}] caching", 0, "", "", 1) for name in off]
    evidence += [
        Evidence(f"misses of {region} not stored", share, "of all", "cache_sets", 0)
        for region, share in case.misses.unstored.items()
    ]
    evidence += [
        Evidence(f"time that [{name}] caches", seconds, "s", "cache_expiration", 600)
        for name, seconds in expiring.items()
    ]
    part = case.misses.unstored_share
    if expiring:
        part += case.misses.lost_share
    if not case.misses.sets:
        part = part or 1.0
    checks = {"revoke"} & {*off, *case.misses.unstored}

    def spared(calls: Calls) -> float:
        fetched = case.excess(calls, DATABASE_PHASES, CHECK) if checks else 0.0
        return part * case.rebuild_seconds(calls) + fetched

    return Suspicion(savings(case, spared), [*evidence, *statements(case)])


def _short_lifetimes(case: Case) -> dict[str, float]:
    """Return the seconds that cached values live, of sections where these are few.

    A negative number means forever.
    """
    if not case.facts.has("cache_expiration"):
        return {}
    found = case.facts.by("cache_expiration", "keystone_configuration_section")
    return {name: value for name, value in found.items() if 0 <= value < SHORT_SECONDS}


RULE: Final = Rule(
    id="C1",
    name="cache-disabled",
    cause="Keystone does not cache: the cache is disabled, its backend is"
    " dogpile.cache.null, some sections have `caching = false`, or values expire at"
    " once.",
    judge=_judge,
    asks=(
        "cache_backends",
        "cache_expiration",
        "cache_errors",
        "cache_call_buckets",
        "cache_gets",
        "cache_sets",
        "invalidations",
        "memcached_up",
        "memoized",
    ),
    fixes=(
        option(
            "cache",
            "backend = oslo_cache.memcache_pool",
            "Changes of roles and projects take effect after the cache time; a dead"
            " memcached stalls calls: see C2.",
        ),
        option(
            "cache",
            "memcache_servers = HOST:11211",
            "All nodes need the same list: see C9.",
        ),
        option(
            "cache",
            "enabled = true",
            "None with a backend that caches; it is Keystone's default.",
        ),
        option(
            "role",
            "caching = true, and so in [identity], [resource], [catalog], [token],"
            " [application_credential] and [revoke]",
            "Changes take effect after the cache time; it is Keystone's default.",
        ),
        option(
            "cache",
            "expiration_time = 600, and so `cache_time` in sections that have one",
            "Changes take effect after this time; it is Keystone's default.",
        ),
    ),
    gain="The time in SQL, its pool and the ORM, for the statements that a warm cache"
    " saves, less the calls to the cache.",
    threshold="The backend is read from Keystone's configuration; no limit is needed."
    " A section does not cache if half of the misses of its region are not stored: one"
    " that caches stores each of them, and one that does not stores none. Values that"
    " live less than a minute explain the misses of regions that nothing empties:"
    " services ask again each minute or later.",
    panel="cache: Hits by layer",
    explains=("C9", "D1", "D6"),
    fixed_options=with_memcached,
)
