"""C3: the cache client has no time-out, so a silent server stops all workers."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import UP, option
from keylag.diagnosis.rule import Evidence, Rule, Suspicion

UNBOUNDED: Final = ("dogpile.cache.pymemcache", "dogpile.cache.redis")
"""Backends whose client waits for ever, unless their arguments say otherwise."""
STUCK_SHARE: Final = 0.9
FEW_REQUESTS: Final = 0.2
"""Requests per second of a busy worker; the slowest healthy ones take 1 s."""


def _judge(case: Case) -> Suspicion | str:
    used = case.backends.intersection(UNBOUNDED)
    if not used:
        return f"{', '.join(sorted(case.backends))} has a time-out."
    states = case.facts.by("server_workers", "state")
    workers = sum(states.values())
    busy = states.get("busy", 0.0)
    requests = case.facts.number("requests")
    if busy < STUCK_SHARE * workers:
        return "Some workers are idle."
    if requests > FEW_REQUESTS * busy:
        return "Workers complete their requests."
    if case.facts.has("memcached_up") and case.facts.number("memcached_up") >= UP:
        return "The cache server answers."
    evidence = [
        Evidence("busy workers", busy, "workers", "server_workers"),
        Evidence("completed requests", requests, "requests/s", "requests"),
    ]
    return Suspicion({}, evidence, worker_seconds=busy)


RULE: Final = Rule(
    id="C3",
    name="cache-client-unbounded",
    cause="The cache server is silent and its client has no time-out: workers wait for"
    " ever.",
    judge=_judge,
    asks=(
        "server_workers",
        "requests",
        "memcached_up",
        "workers",
        "cache_backends",
    ),
    fixes=(
        option(
            "cache",
            "backend = oslo_cache.memcache_pool",
            "A restart of Keystone; the cache is empty at first.",
        ),
        option(
            "cache",
            "backend_argument = timeout:0.25",
            "For dogpile.cache.pymemcache; a server that is only slow fails sooner.",
        ),
    ),
    gain="The busy workers, all of which wait.",
    threshold="All workers busy and hardly any request completed is no load: the"
    " slowest healthy call takes about a second.",
    panel="workers: Workers by state",
    explains=("C2", "W1"),
)
