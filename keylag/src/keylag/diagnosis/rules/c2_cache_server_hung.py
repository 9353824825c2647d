"""C2: a cache server does not answer, or stalls: calls wait, or read the database."""

from collections.abc import Mapping
from typing import Final

from keylag.diagnosis.case import STALL_SECONDS, STARVED, Case, slow_part
from keylag.diagnosis.common import (
    memcached_refuses,
    option,
    savings,
    server_fails,
    statements,
)
from keylag.diagnosis.facts import ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion

SHORT_STALL_SECONDS: Final = 0.01
"""The same where workers get a CPU when they want one: then nothing else delays them
so long."""
MOST: Final = 0.5
"""If more calls than this are slow, the server is far, and does answer."""


def _judge(case: Case) -> Suspicion | str:
    if not case.caches:
        return "Keystone has no cache."
    buckets = case.cache_call_buckets
    limit = STALL_SECONDS if case.cpu_wait_share >= STARVED else SHORT_STALL_SECONDS
    stalls, least_seconds = slow_part(buckets, limit)
    fails = server_fails(case)
    if not (fails or stalls):
        return "No call to the cache server failed or stalled."
    if not fails and stalls > MOST * case.cache_calls:
        return "Most calls to the cache server are slow alike: see C4."
    if memcached_refuses(case):
        return "memcached is at its limit of connections: see C6."
    evidence = [
        Evidence(
            "failed calls to the cache server",
            case.facts.number("cache_errors"),
            "errors/s",
            "cache_errors",
            0,
        ),
        Evidence(
            f"calls to the cache server over {limit:g} s",
            stalls,
            "calls/s",
            "cache_call_buckets",
            0,
        ),
        *statements(case),
    ]
    if case.facts.has("memcached_up"):
        answers = case.facts.number("memcached_up")
        evidence.insert(
            0, Evidence("memcached answers", answers, "of the time", "memcached_up", 1)
        )
    # Without failures, only the stalls are the server's doing.
    part = 1.0
    if not fails:
        whole = case.facts.number("cache_call_seconds")
        stalled = max(least_seconds, whole - _fast_seconds(buckets, limit))
        part = min(ratio(stalled, whole), 1.0)
    lost = {
        kind: Saving(part * one.low, part * one.mid, one.high)
        for kind, one in savings(case, case.cache_loss_seconds).items()
    }
    return Suspicion(lost, evidence)


def _fast_seconds(buckets: Mapping[float, float], limit: float) -> float:
    """Return the time of calls that do not stall, as long as it may be."""
    seconds, below, previous = 0.0, 0.0, 0.0
    for bound in sorted(buckets):
        if previous >= limit:
            break
        if count := buckets[bound] - below:
            seconds += count * bound
        below, previous = buckets[bound], bound
    return seconds


RULE: Final = Rule(
    id="C2",
    name="cache-server-hung",
    cause="A cache server does not answer, or stalls: calls wait for it or for its"
    " time-out, and then read the database.",
    judge=_judge,
    asks=(
        "cache_call_buckets",
        "cache_call_seconds",
        "cache_errors",
        "cache_gets",
        "cache_sets",
        "cpu_wait_seconds",
        "other_seconds",
        "memcached_up",
        "memcached_connections",
        "memcached_refusals",
        "memcached_full",
        "cache_backends",
    ),
    fixes=(
        Fix("memcached", "start or replace the server", "Its cache is empty at first."),
        option(
            "cache",
            "memcache_servers = where memcached listens, if its exporter reaches it",
            "The same list on all nodes: see C9.",
        ),
        option(
            "cache",
            "socket_timeout = 0.25",
            "A server that is only slow counts as dead sooner. Older releases know it"
            " as memcache_socket_timeout only.",
        ),
        option(
            "cache",
            "memcache_dead_retry = 300",
            "A repaired server is used again after five minutes.",
        ),
    ),
    gain="The time of calls to the cache beyond that of a healthy server, and of the"
    " statements that a warm cache saves; without failures, the part of it that stalls"
    " have, and at most all of it.",
    threshold=f"A call over {SHORT_STALL_SECONDS:g} s is a stall: healthy ones take"
    f" less than 5 ms. If workers wait for a CPU, it is one over {STALL_SECONDS:g} s:"
    " the shortest time-out in use is 0.25 s. memcached is silent if"
    " it answers less than 90 % of the time: a busy one may miss single scrapes. Failed"
    " calls count from one in a hundred: fewer explain nothing else. If"
    " more than half of the calls stall and none fails, the server is far, and does"
    " answer: see C4.",
    panel="cache: Errors and stalls",
    explains=("C4", "C9", "D5", "D6", "W1", "M1", "M2", "N1"),
)
