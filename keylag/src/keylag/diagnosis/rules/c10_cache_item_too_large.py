"""C10: the catalog is larger than an item of memcached, so it is never cached."""

from typing import Final

from keylag.diagnosis.case import DATABASE_PHASES, Case
from keylag.diagnosis.common import savings
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion


def _judge(case: Case) -> Suspicion | str:
    refused = case.facts.number("memcached_too_large")
    if not refused:
        return "memcached refused no item for its size."
    found = savings(
        case, lambda calls: calls.spent([*DATABASE_PHASES, "cache"], ["catalog"])
    )
    evidence = [Evidence("refused items", refused, "items/s", "memcached_too_large", 0)]
    return Suspicion(found, evidence)


RULE: Final = Rule(
    id="C10",
    name="cache-item-too-large",
    cause="The catalog is larger than memcached's largest item: it is built anew for"
    " each call.",
    judge=_judge,
    asks=("memcached_too_large",),
    fixes=(
        Fix("memcached", "-I 4m", "The restart empties the cache."),
        Fix(
            "the clients",
            "ask for ?nocatalog where they do not need it",
            "None for clients that know their endpoints.",
        ),
    ),
    gain="The time of the catalog in SQL, ORM and cache.",
    threshold="Any refused item counts; the catalog's time says what it costs.",
    panel="cache: Memory",
    explains=("A2",),
)
