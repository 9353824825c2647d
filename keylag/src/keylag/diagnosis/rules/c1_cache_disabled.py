"""C1: Keystone has no cache, so each call reads everything from the database."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import option, savings, statements
from keylag.diagnosis.facts import Calls
from keylag.diagnosis.rule import Evidence, Rule, Suspicion


def _judge(case: Case) -> Suspicion | str:
    if case.caches:
        return f"Keystone caches with {', '.join(sorted(case.backends))}."
    workers = case.facts.number("cache_backends")
    evidence = [
        Evidence("workers without a cache", workers, "workers", "cache_backends", 0),
        *statements(case),
    ]

    def spared(calls: Calls) -> float:
        lookups = case.expected.seconds(calls, ["cache"], ()) or 0.0
        return max(case.rebuild_seconds(calls) - lookups, 0.0)

    return Suspicion(savings(case, spared), evidence)


RULE: Final = Rule(
    id="C1",
    name="cache-disabled",
    cause="Keystone has no cache: its backend is dogpile.cache.null.",
    judge=_judge,
    asks=("cache_backends",),
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
    ),
    gain="The time in SQL, its pool and the ORM, for the statements that a warm cache"
    " saves, less the calls to the cache.",
    threshold="The backend is read from Keystone's configuration; no limit is needed.",
    panel="cache: Hits by layer",
    explains=("C9", "D1", "D6"),
)
