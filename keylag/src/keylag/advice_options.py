"""Options that may reduce latency, by where the time goes and by configuration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from keylag.run_environment import (
    THREADS,
    Environment,
    cache_backend,
    is_service_load,
)

QUEUE: Final = "queue"
"""Waiting for a free worker."""
OUTSIDE: Final = "outside"
"""Time outside the workers whose cause is unknown."""


def _always(_environment: Environment) -> bool:
    return True


def _has_null_cache(environment: Environment) -> bool:
    return cache_backend(environment) == "null"


def _has_cache(environment: Environment) -> bool:
    return cache_backend(environment) not in {"", "null"}


def _has_unknown_cache(environment: Environment) -> bool:
    return not cache_backend(environment)


def _has_redis_cache(environment: Environment) -> bool:
    return cache_backend(environment) == "redis"


def _has_threads(environment: Environment) -> bool:
    return int(environment.get(THREADS, 0)) > 1 and not is_service_load(environment)


def _calls_keystone(environment: Environment) -> bool:
    return not is_service_load(environment)


@dataclass(frozen=True)
class Option:
    """A change that may help where much of the time is in `place`.

    It is offered for runs whose environment satisfies `applies`.
    """

    place: str
    """A category of the breakdown, QUEUE or OUTSIDE."""
    text: str
    """One sentence."""
    applies: Callable[[Environment], bool] = _always
    security_cost: str = ""
    """How the change weakens security; empty if it does not."""

    def __str__(self) -> str:
        """Return the sentence, followed by the security cost if there is one."""
        if not self.security_cost:
            return self.text
        return f"{self.text} Costs security: {self.security_cost}."


_ENABLE_CACHE: Final = (
    "Set [cache] backend to oslo_cache.memcache_pool: "
    "dogpile.cache.null caches nothing, so every call queries the database."
)
_ENABLE_CACHE_IF_OFF: Final = (
    "If [cache] backend is dogpile.cache.null (the default), "
    "set it to oslo_cache.memcache_pool."
)

OPTIONS: Final = (
    Option(QUEUE, "Start more Keystone processes, if a processor is idle."),
    Option(QUEUE, "Send fewer requests at a time."),
    Option(
        OUTSIDE,
        "Start more Keystone processes, if all workers are busy and a processor is "
        "idle.",
        _calls_keystone,
    ),
    Option(
        OUTSIDE,
        "Start more workers of the service, if all of them are busy.",
        is_service_load,
    ),
    Option("password_hash", "Reuse tokens: each log-in checks a password hash."),
    Option(
        "password_hash",
        "Lower [identity] password_hash_rounds, which applies to passwords set later.",
        security_cost="a stolen hash takes proportionally less time to crack",
    ),
    Option("sql", _ENABLE_CACHE, _has_null_cache),
    Option(
        "sql",
        "The cache is on: look for the statements that remain, in the breakdown.",
        _has_cache,
    ),
    Option("sql", "Check the network latency to the database.", _has_cache),
    Option("sql", _ENABLE_CACHE_IF_OFF, _has_unknown_cache),
    Option("orm", _ENABLE_CACHE, _has_null_cache),
    Option(
        "orm",
        "Send fewer statements: look for the steps that still query the database.",
        _has_cache,
    ),
    Option("orm", _ENABLE_CACHE_IF_OFF, _has_unknown_cache),
    Option("cache", "Place the cache server near Keystone: each call is a round trip."),
    Option(
        "cache",
        "Set [cache] backend to oslo_cache.memcache_pool: with Redis, repeated "
        "look-ups within a request go over the network.",
        _has_redis_cache,
    ),
    Option("revocation", "Shorten [token] expiration: fewer revocation events live."),
    Option("revocation", "Leave [revoke] caching on."),
    Option(
        "revocation",
        "Delete fewer tokens: each deletion adds revocation events.",
        security_cost="a token that is not revoked stays valid until it expires",
    ),
    Option(
        "token_crypto",
        "Keep the keys on a local file system: Keystone reads them at every use.",
    ),
    Option(
        "token_crypto",
        "Keep as few keys ([fernet_tokens] max_active_keys) as [token] expiration "
        "allows.",
    ),
    Option(
        "other",
        "Give the service's workers a shared token cache ([keystone_authtoken] "
        "memcached_servers).",
        is_service_load,
    ),
    Option(
        "other",
        "Raise [keystone_authtoken] token_cache_time.",
        is_service_load,
        security_cost="the service accepts a revoked token for that time",
    ),
    Option(
        "other",
        "Use processes instead of threads: one thread of a process runs at a time.",
        _has_threads,
    ),
    Option(
        "other",
        "Send fewer calls: this time is Keystone's own Python code.",
        _calls_keystone,
    ),
)


def find_options(place: str, environment: Environment) -> list[str]:
    """Return the options for a place that apply to a run, each with its cost."""
    return [
        str(option)
        for option in OPTIONS
        if option.place == place and option.applies(environment)
    ]
