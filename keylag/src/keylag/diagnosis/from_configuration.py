"""What a configuration says of measurements that are missing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from keylag.diagnosis.configuration import Configuration
from keylag.diagnosis.facts import Facts
from keylag.diagnosis.prometheus import Sample

DEFAULT_BACKEND: Final = "dogpile.cache.null"
DISABLED: Final = "disabled"
"""How keylag-otel reports `[cache] enabled = false`."""
DEFAULT_ALGORITHM: Final = "bcrypt"


def add_configuration(facts: Facts, configuration: Configuration) -> Facts:
    """Return facts with a configuration, and what it says where they have nothing."""
    if not configuration.files:
        return facts
    answers = {**_answers(configuration), **facts.answers}
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
    return {
        "cache_backends": [
            Sample({"keystone_cache_backend": DISABLED if off else backend}, 1.0)
        ],
        "hashes": [Sample(hashing, 1.0)],
    }
