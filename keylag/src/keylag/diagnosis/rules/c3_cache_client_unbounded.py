"""C3: the cache client has no time-out, so a silent server stops all workers."""

from typing import Final

from keylag.diagnosis.case import STALL_SECONDS, Case, slow_part
from keylag.diagnosis.common import UP, option, savings
from keylag.diagnosis.rule import Evidence, Rule, Suspicion

UNBOUNDED: Final = ("dogpile.cache.pymemcache", "dogpile.cache.redis")
"""Backends whose client waits for ever; that of Redis has a time-out since oslo.cache
has `socket_timeout`, and tries again for many seconds."""
STUCK_SHARE: Final = 0.9
"""Share of busy workers; the last ones stop at their next call to the cache."""
FEW_REQUESTS: Final = 0.2
"""Requests per second of a busy worker; the slowest healthy ones take 1 s."""


def _judge(case: Case) -> Suspicion | str:
    if not case.caches:
        return "Keystone has no cache."
    used = case.backends.intersection(UNBOUNDED)
    if not used:
        return f"{', '.join(sorted(case.backends))} has a time-out."
    busy = case.busy_workers or 0.0
    if _are_stuck(case, busy):
        evidence = [
            Evidence("busy workers", busy, "workers", "server_workers"),
            Evidence(
                "completed requests",
                case.facts.number("requests"),
                "requests/s",
                "requests",
            ),
        ]
        return Suspicion({}, evidence, worker_seconds=busy)
    if case.facts.number("cache_errors"):
        return "Calls to the cache server fail after a time: see C2."
    stalls, seconds = slow_part(case.facts.buckets("cache_call_buckets"), STALL_SECONDS)
    if not stalls:
        return "No call to the cache server stalled."
    evidence = [
        Evidence(
            f"calls to the cache server over {STALL_SECONDS:g} s",
            stalls,
            "calls/s",
            "cache_call_buckets",
            0,
        ),
        Evidence("each of them at least", seconds / stalls, "s", "cache_call_buckets"),
        Evidence("failed calls to the cache server", 0, "errors/s", "cache_errors", 0),
    ]
    return Suspicion(savings(case, lambda one: case.excess(one, ["cache"])), evidence)


def _are_stuck(case: Case, busy: float) -> bool:
    """Return whether all workers are busy and complete nothing; False if unknown."""
    if not case.facts.has("server_workers", "requests"):
        return False
    workers = sum(case.facts.by("server_workers", "state").values())
    answers = case.facts.has("memcached_up") and case.facts.number("memcached_up") >= UP
    return (
        busy >= STUCK_SHARE * workers > 0
        and case.facts.number("requests") <= FEW_REQUESTS * busy
        and not answers
    )


RULE: Final = Rule(
    id="C3",
    name="cache-client-unbounded",
    cause="The cache server is silent at times, and its client has no time-out: workers"
    " wait until it answers.",
    judge=_judge,
    asks=(
        "server_workers",
        "requests",
        "memcached_up",
        "cache_backends",
        "cache_errors",
        "cache_call_buckets",
    ),
    fixes=(
        option(
            "cache",
            "backend = oslo_cache.memcache_pool",
            "A restart of Keystone; the cache is empty at first.",
        ),
    ),
    gain="The busy workers if all of them wait, else the time of calls to the cache"
    " beyond that of a healthy server.",
    threshold="Workers are stuck if 90 % of them are busy, as the last ones stop at"
    " their next call to the cache. They complete one request in 5 s each at most,"
    " while the slowest healthy call takes a second, and memcached, if its exporter"
    " tells, answers less than 90 % of the time, as in C2. Otherwise, a call that"
    " takes longer than 0.1 s and then succeeds had no time-out: the shortest in use"
    " is 0.25 s.",
    panel="workers: Workers by state",
    explains=("C2", "W1", "N1"),
)
