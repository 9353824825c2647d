"""M1: a service validates tokens online: its token cache is off or short."""

from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.facts import ratio
from keylag.diagnosis.rule import Evidence, Fix, Rule, Saving, Suspicion
from keylag.diagnosis.service_requests import find_service_requests

WAITING: Final = "keystone"
"""The phase of a service's requests that waits for Keystone."""


def validations(case: Case) -> dict[str, float]:
    """Return the validations of services per second: `online` ones are misses."""
    return case.facts.by("service_validations", "keystone_auth_token_validation")


def lost_by_cache(case: Case) -> float:
    """Return the misses per second of tokens that the cache should still have.

    A replay of the same look-ups with the same token_cache_time has fewer.
    """
    if case.facts.number("service_cache_time") <= 0:
        return 0.0
    replayed = case.facts.by("service_replayed", "keystone_auth_token_times")
    misses = validations(case).get("online", 0.0)
    return max(misses - replayed.get("1", misses), 0.0)


def _judge(case: Case) -> Suspicion | str:
    by_result = validations(case)
    misses = by_result.get("online", 0.0)
    whole = sum(by_result.values())
    services = find_service_requests(case.facts)
    if not misses or not services:
        return "No service validated a token in Keystone."
    replayed = case.facts.by("service_replayed", "keystone_auth_token_times")
    spared = misses - lost_by_cache(case) - min(replayed.values(), default=0.0)
    part = max(spared, 0.0) / misses
    waited = case.facts.by("service_cells", "keystone_phase").get(WAITING, 0.0)
    savings = {
        one.kind: Saving.about(part * one.phases.get(WAITING, 0.0), low=0.7)
        for one in services
    }
    evidence = [
        Evidence("validations in Keystone", misses, "/s", "service_validations"),
        Evidence("their part", ratio(misses, whole), "of all", "service_validations"),
        Evidence(
            "with a longer cache time",
            min(replayed.values(), default=0.0),
            "/s",
            "service_replayed",
        ),
        Evidence("time of one", waited / misses, "s", "service_cells"),
    ]
    if failed := case.facts.number("service_cache_errors"):
        evidence.append(
            Evidence(
                "failed calls to the token cache",
                failed,
                "errors/s",
                "service_cache_errors",
                0,
            )
        )
    return Suspicion(savings, evidence)


RULE: Final = Rule(
    id="M1",
    name="token-cache",
    cause="Services validate the same tokens in Keystone again and again: their token"
    " cache is off or too short.",
    judge=_judge,
    asks=(
        "service_validations",
        "service_requests",
        "service_seconds",
        "service_replayed",
        "service_cells",
        "service_cache_errors",
        "service_cache_time",
    ),
    fixes=(
        Fix(
            "the service's [keystone_authtoken]",
            "token_cache_time = 300",
            "A revoked token is accepted for that time.",
        ),
        Fix(
            "the service's [keystone_authtoken]",
            "memcached_servers = HOST:11211",
            "The service needs a memcached; without it each worker caches alone.",
        ),
        Fix(
            "memcached",
            "start or replace the server, if calls to the token cache fail",
            "Its cache is empty at first.",
        ),
    ),
    gain="The misses that a longer cache time would save, as replayed from the same"
    " look-ups, times the time of one.",
    threshold="A sixth of a service's requests of one method, as for all causes.",
    panel="services: Validations by service",
)
