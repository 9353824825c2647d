"""C10: the catalog is larger than an item of memcached, so it is never cached."""

from collections import defaultdict
from typing import Final

from keylag.diagnosis.cache_misses import FLUSHED_BY_LOGOUTS
from keylag.diagnosis.case import DATABASE_PHASES, Case
from keylag.diagnosis.common import option, savings
from keylag.diagnosis.facts import ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Suspicion

CATALOG: Final = "computed catalog region"
NEVER_STORED: Final = 0.5
"""Share of look-ups that miss: within a request the second one is a hit."""
OTHERS_MISSED: Final = 0.1
"""Share of the other look-ups that miss, at most, in a cache that works."""


def _missed(case: Case) -> tuple[float, float]:
    """Return the missed share of look-ups of catalogs, and of all others.

    Those of tokens are left out: each log-out empties their regions.
    """
    looked_up, missed = defaultdict[bool, float](float), defaultdict[bool, float](float)
    for one in case.facts.samples("memoized"):
        region = one.labels.get("keystone_cache_region", "")
        if region not in FLUSHED_BY_LOGOUTS:
            is_catalog = region == CATALOG
            looked_up[is_catalog] += one.value
            if one.labels["keystone_cache_result"] == "miss":
                missed[is_catalog] += one.value
    catalogs, others = (ratio(missed[x], looked_up[x]) for x in (True, False))
    return catalogs, others


def _judge(case: Case) -> Suspicion | str:
    if not case.caches:
        return "Keystone has no cache."
    refused = case.facts.number("memcached_too_large")
    catalogs, others = _missed(case)
    flushed = case.facts.by("invalidations", "keystone_cache_region").get(CATALOG, 0.0)
    # Clients of memcached that know its limit do not send what is larger.
    never_stored = (
        catalogs >= NEVER_STORED
        and others <= OTHERS_MISSED
        and CATALOG not in case.misses.unstored
        and not flushed
    )
    if not (refused or never_stored):
        return "memcached refused no item for its size, and catalogs are found in it."
    found = savings(
        case, lambda calls: calls.spent([*DATABASE_PHASES, "cache"], ["catalog"])
    )
    evidence = [
        Evidence("refused items", refused, "items/s", "memcached_too_large", 0),
        Evidence("missed look-ups of catalogs", catalogs, "of all", "memoized", 0),
        Evidence("missed look-ups of others", others, "of all", "memoized", 0),
    ]
    return Suspicion(found, evidence)


RULE: Final = Rule(
    id="C10",
    name="cache-item-too-large",
    cause="The catalog is larger than memcached's largest item: it is built anew for"
    " each call.",
    judge=_judge,
    asks=(
        "memcached_too_large",
        "memoized",
        "invalidations",
        "cache_backends",
        "cache_sets",
    ),
    fixes=(
        Fix("memcached", "-I 4m", "The restart empties the cache."),
        option(
            "cache",
            "backend_argument = server_max_value_length:4194304",
            "For oslo_cache.memcache_pool, beside -I of memcached: its client drops"
            " larger items, too.",
        ),
        Fix(
            "the clients",
            "ask for ?nocatalog where they do not need it",
            "None for clients that know their endpoints.",
        ),
    ),
    gain="The time of the catalog in SQL, ORM and cache.",
    threshold="Any refused item counts. Otherwise half of the look-ups of catalogs"
    " miss, as within a request the second one is a hit. At most a tenth of the other"
    " look-ups miss: the cache works, and only values that expire are not in it.",
    panel="cache: Memory",
    explains=("A2", "C8", "C9"),
)
