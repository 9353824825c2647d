"""What is configured rather than counted: read when metrics are exported.

Nobody knows by heart how many Fernet keys they keep, how old the newest is, or
how much a password costs, and each explains a part of a token's time.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any, Callable

from keylag_otel import instruments

Readings = Iterator["tuple[float, dict[str, Any]]"]

#: Keystone's own default cost where `password_hash_rounds` is not set.
_DEFAULT_COST = {
    "bcrypt": 12,
    "bcrypt_sha256": 12,
    "scrypt": 16,
    "pbkdf2_sha512": 25000,
}
_REPOSITORIES = {"tokens": "fernet_tokens", "receipts": "fernet_receipts"}


def _configuration() -> Any:
    """Return Keystone's configuration, once Keystone has been started."""
    module = sys.modules.get("keystone.conf")
    return None if module is None else module.CONF


def _keys(folder: str) -> dict[int, float]:
    """Return the numbers of the keys in a repository, with when each was written."""
    try:
        with os.scandir(folder) as entries:
            return {
                int(entry.name): entry.stat().st_mtime
                for entry in entries
                if entry.name.isdigit()
            }
    except OSError:
        return {}


def _repositories() -> Iterator[tuple[str, dict[int, float]]]:
    """Yield the repositories that hold keys, and when each key was written."""
    configuration = _configuration()
    for name, group in _REPOSITORIES.items() if configuration else ():
        keys = _keys(configuration[group].key_repository)
        if keys:
            yield name, keys


def fernet_keys() -> Readings:
    """Yield how many keys each Fernet repository holds; all may be read per token."""
    for name, keys in _repositories():
        yield len(keys), {instruments.KEY_REPOSITORY: name}


def fernet_primary_age() -> Readings:
    """Yield the seconds since the primary key, the highest number, was written."""
    now = time.time()
    for name, keys in _repositories():
        yield now - keys[max(keys)], {instruments.KEY_REPOSITORY: name}


def password_hash_cost() -> Readings:
    """Yield the configured cost of new passwords, under their algorithm."""
    configuration = _configuration()
    if configuration is None:
        return
    algorithm = configuration.identity.password_hash_algorithm
    default = _DEFAULT_COST.get(algorithm, 0)
    # Keystone has a fixed cost for scrypt and does not look at the rounds.
    fixed = algorithm == "scrypt"
    rounds = None if fixed else configuration.identity.password_hash_rounds
    yield rounds or default, {instruments.HASH_ALGORITHM: algorithm}


def configuration_info() -> Readings:
    """Yield 1 with the choices that decide where time goes."""
    configuration = _configuration()
    if configuration is None:
        return
    cache = configuration.cache
    yield (
        1,
        {
            instruments.CACHE_BACKEND: cache.backend if cache.enabled else "disabled",
            instruments.TOKEN_PROVIDER: configuration.token.provider,
            instruments.HASH_ALGORITHM: configuration.identity.password_hash_algorithm,
        },
    )


#: By the name of the instrument in ``instruments.GAUGES``.
READ: dict[str, Callable[[], Readings]] = {
    "fernet_keys": fernet_keys,
    "fernet_primary_age": fernet_primary_age,
    "password_hash_cost": password_hash_cost,
    "configuration_info": configuration_info,
}
