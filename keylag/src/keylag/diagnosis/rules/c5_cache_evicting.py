"""C5: memcached has too little memory and evicts what Keystone needs."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.common import memcached_is_full, rebuild_suspicion
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion


def _judge(case: Case) -> Suspicion | str:
    if not case.uses_memcached:
        return "Keystone does not use memcached."
    evictions = case.facts.number("memcached_evictions")
    if not memcached_is_full(case):
        return "memcached evicts nothing."
    evidence = [
        Evidence("evictions", evictions, "items/s", "memcached_evictions", 0),
        Evidence(
            "memory of memcached",
            case.facts.number("memcached_bytes"),
            "of the limit",
            "memcached_bytes",
        ),
        Evidence("missed look-ups", case.missed(), "of all", "memoized"),
    ]
    return rebuild_suspicion(case, evidence, case.misses.lost_share)


RULE: Final = Rule(
    id="C5",
    name="cache-evicting",
    cause="memcached has too little memory: it evicts what Keystone needs next.",
    judge=_judge,
    asks=(
        "cache_backends",
        "memcached_evictions",
        "memcached_bytes",
        "memoized",
        "cache_sets",
        "invalidations",
    ),
    fixes=(
        Fix(
            "memcached",
            "-m = twice as many megabytes; 64 is its default",
            "The host needs that memory; the restart empties the cache.",
        ),
    ),
    gain="The time of the statements that a warm cache saves, for the misses of regions"
    " that nothing else empties.",
    threshold="Any eviction counts, and the statements per call say what it costs: a"
    " cache that many share is always full, and may still have all that Keystone"
    " needs.",
    panel="cache: Memory",
    explains=("C9",),
)
