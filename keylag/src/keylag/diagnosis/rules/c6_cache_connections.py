"""C6: memcached has no connection left for Keystone."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import (
    memcached_refuses,
    option,
    savings,
    statements,
)
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion


def _judge(case: Case) -> Suspicion | str:
    if not case.uses_memcached:
        return "Keystone does not use memcached."
    used = case.facts.number("memcached_connections")
    refusals = case.facts.number("memcached_refusals")
    if not memcached_refuses(case):
        return f"memcached has {used:.0%} of its connections in use."
    evidence = [
        Evidence(
            "connections of memcached", used, "of the limit", "memcached_connections"
        ),
        Evidence(
            "memcached refuses connections",
            case.facts.number("memcached_full"),
            "of the time",
            "memcached_full",
            0,
        ),
        Evidence(
            "times that memcached stopped accepting connections",
            refusals,
            "times/s",
            "memcached_refusals",
            0,
        ),
        *statements(case),
    ]
    return Suspicion(savings(case, case.cache_loss_seconds), evidence)


RULE: Final = Rule(
    id="C6",
    name="cache-connections",
    cause="memcached is at its limit of connections: new ones wait or fail.",
    judge=_judge,
    asks=(
        "cache_backends",
        "memcached_connections",
        "memcached_refusals",
        "memcached_full",
    ),
    fixes=(
        Fix("memcached", "-c 4096", "Each connection takes some memory."),
        option(
            "cache",
            "memcache_pool_maxsize = as many as threads of a worker; 10 is its default",
            "Threads of a worker wait for each other if it is too small.",
        ),
    ),
    gain="The time of calls to the cache beyond that of a healthy server, and of the"
    " statements that a warm cache saves.",
    threshold="A refused connection counts, or 95 % of the limit in use: memcached"
    " keeps some connections for itself.",
    panel="cache: Refused clients",
    explains=("C2", "C4", "C9"),
)
