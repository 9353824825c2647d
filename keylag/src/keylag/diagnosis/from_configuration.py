"""What a configuration says of measurements that are missing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from keylag.diagnosis.configuration import Configuration, Option
from keylag.diagnosis.facts import Facts
from keylag.diagnosis.prometheus import Sample

DEFAULT_BACKEND: Final = "dogpile.cache.null"
DISABLED: Final = "disabled"
"""How keylag-otel reports `[cache] enabled = false`."""
DEFAULT_ALGORITHM: Final = "bcrypt"
CACHED_SECTIONS: Final = (
    *("token", "identity", "resource", "role", "catalog"),
    "application_credential",
)
"""Sections that have `caching`, and a `cache_time` beside `[cache] expiration_time`."""
CACHE_TIMES: Final = (
    Option("cache", "expiration_time"),
    *(Option(section, "cache_time") for section in CACHED_SECTIONS),
)
"""Options that say how long a value stays in the cache."""


def add_configuration(facts: Facts, configuration: Configuration) -> Facts:
    """Return facts with a configuration, and what it says where they have nothing."""
    if not configuration.files:
        return facts
    missing = {
        name: samples
        for name, samples in _answers(configuration).items()
        if not facts.answers.get(name)
    }
    answers = {**facts.answers, **missing}
    return replace(facts, configuration=configuration, answers=answers)


def _answers(configuration: Configuration) -> Mapping[str, Sequence[Sample]]:
    enabled = configuration.find("cache", "enabled")
    off = enabled is not None and enabled.is_false
    backend = configuration.value("cache", "backend", DEFAULT_BACKEND)
    algorithm = configuration.value(
        "identity", "password_hash_algorithm", DEFAULT_ALGORITHM
    )
    rounds = configuration.value("identity", "password_hash_rounds")
    # Only bcrypt's rounds are doublings; scrypt ignores the option.
    known = rounds.isdigit() and algorithm.startswith("bcrypt")
    hashing = {
        "keystone_password_hash_algorithm": algorithm,
        "keystone_password_hash_cost": rounds if known else "",
    }
    lifetimes = [
        Sample({"keystone_configuration_section": one.section}, float(seconds))
        for one in CACHE_TIMES
        if (seconds := configuration.value(one.section, one.name)).isdigit()
    ]
    return {
        "cache_expiration": lifetimes,
        "cache_backends": [
            Sample({"keystone_cache_backend": DISABLED if off else backend}, 1.0)
        ],
        "hashes": [Sample(hashing, 1.0)],
    }
