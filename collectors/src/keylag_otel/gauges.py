"""Gauges of Keystone's configuration, read at each export.

The number and age of Fernet keys and the cost of password hashes each explain a part
of a token's time.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any, Callable

from keylag_otel import instruments

Observations = Iterator["tuple[float, dict[str, Any]]"]

#: Keystone's default cost by algorithm, if `password_hash_rounds` is unset.
_DEFAULT_COST = {
    "bcrypt": 12,
    "bcrypt_sha256": 12,
    "scrypt": 16,
    "pbkdf2_sha512": 25000,
}
#: An address of memcached that other hosts do not reach, before its port.
_LOCAL_ADDRESS = re.compile(
    r"^(?:inet6?:)?(?:localhost|127(?:\.\d+){3}|\[::1\])(?=:|$)|^unix:.*"
)
#: Sections whose `cache_time`, if it is set, replaces `[cache] expiration_time`.
CACHED_SECTIONS = (
    *("token", "identity", "resource", "role", "catalog"),
    "application_credential",
)
_REPOSITORIES = {"tokens": "fernet_tokens", "receipts": "fernet_receipts"}


def _keystone_conf() -> Any:
    # None until Keystone has been imported.
    module = sys.modules.get("keystone.conf")
    return None if module is None else module.CONF


def _key_times(folder: str) -> dict[int, float]:
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
    configuration = _keystone_conf()
    for name, group in _REPOSITORIES.items() if configuration else ():
        keys = _key_times(configuration[group].key_repository)
        if keys:
            yield name, keys


def fernet_keys() -> Observations:
    """Yield the number of keys in each Fernet repository."""
    for name, keys in _repositories():
        yield len(keys), {instruments.KEY_REPOSITORY: name}


def fernet_primary_age() -> Observations:
    """Yield the age in seconds of each primary key, the one with the highest number."""
    now = time.time()
    for name, keys in _repositories():
        yield now - keys[max(keys)], {instruments.KEY_REPOSITORY: name}


def password_hash_cost() -> Observations:
    """Yield the configured cost of new password hashes: rounds, or log2 of n."""
    configuration = _keystone_conf()
    if configuration is None:
        return
    algorithm = configuration.identity.password_hash_algorithm
    default = _DEFAULT_COST.get(algorithm, 0)
    # Keystone ignores password_hash_rounds for scrypt.
    fixed = algorithm == "scrypt"
    rounds = None if fixed else configuration.identity.password_hash_rounds
    yield rounds or default, {instruments.HASH_ALGORITHM: algorithm}


def _cache_servers(backend: str, memcached: list[str]) -> str:
    """Return the servers in their order, which clients use; empty if not memcached.

    An address that only this host can reach has the host's name instead.
    """
    if "memcache" not in backend:
        return ""
    host = socket.gethostname()
    return ",".join(_LOCAL_ADDRESS.sub(host, server) for server in memcached)


def cache_expiration_time() -> Observations:
    """Yield the seconds that values of each section stay in the cache, if any do."""
    configuration = _keystone_conf()
    if configuration is None or not configuration.cache.enabled:
        return
    for section in CACHED_SECTIONS:
        own = getattr(configuration[section], "cache_time", None)
        seconds = configuration.cache.expiration_time if own is None else own
        yield seconds, {instruments.SECTION: section}


def configuration_info() -> Observations:
    """Yield 1 with the options that affect the breakdown as attributes."""
    configuration = _keystone_conf()
    if configuration is None:
        return
    cache = configuration.cache
    backend = cache.backend if cache.enabled else "disabled"
    yield (
        1,
        {
            instruments.CACHE_BACKEND: backend,
            instruments.CACHE_SERVERS: _cache_servers(backend, cache.memcache_servers),
            instruments.TOKEN_PROVIDER: configuration.token.provider,
            instruments.HASH_ALGORITHM: configuration.identity.password_hash_algorithm,
        },
    )


#: By the keys of ``instruments.GAUGES``.
CALLBACKS: dict[str, Callable[[], Observations]] = {
    "fernet_keys": fernet_keys,
    "fernet_primary_age": fernet_primary_age,
    "password_hash_cost": password_hash_cost,
    "cache_expiration_time": cache_expiration_time,
    "configuration_info": configuration_info,
}
