"""What may help, by where the time of a call goes and how Keystone is configured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Environment = Mapping[str, Any]
"""What is known of a run; see the keys below."""

CACHE_BACKEND: Final = "cache_backend"
"""The value of Keystone's `[cache] backend`."""
PROCESSES: Final = "processes"
"""Of Keystone."""
THREADS: Final = "threads_per_process"
"""Of Keystone."""
VIRTUAL_USERS: Final = "virtual_users"
"""Of the load."""
PLAN: Final = "plan"
"""Of the load, by name."""

QUEUE: Final = "queue"
OUTSIDE: Final = "outside"
"""Where time goes before a worker takes the call: a queue if that is known."""


def backend(environment: Environment) -> str:
    """Return the last part of the cache's backend; empty if it is not known."""
    return str(environment.get(CACHE_BACKEND, "")).rpartition(".")[2]


def of_a_service(environment: Environment) -> bool:
    """Tell whether the load called a service, which asks Keystone by itself."""
    return environment.get(PLAN) == "service-call"


def workers(environment: Environment) -> int:
    """Return how many calls Keystone works on at a time; 0 if that is not known."""
    return int(environment.get(PROCESSES, 0)) * int(environment.get(THREADS, 0))


def is_queueing(environment: Environment) -> bool:
    """Tell whether more virtual users than workers were there."""
    users, servers = int(environment.get(VIRTUAL_USERS, 0)), workers(environment)
    return 0 < servers < users and not of_a_service(environment)


def _any(_environment: Environment) -> bool:
    return True


def _null(environment: Environment) -> bool:
    return backend(environment) == "null"


def _cached(environment: Environment) -> bool:
    return backend(environment) not in {"", "null"}


def _unknown(environment: Environment) -> bool:
    return not backend(environment)


def _redis(environment: Environment) -> bool:
    return backend(environment) == "redis"


def _threaded(environment: Environment) -> bool:
    return int(environment.get(THREADS, 0)) > 1 and not of_a_service(environment)


@dataclass(frozen=True)
class Option:
    """What may help when much of the time is in `place`, if `holds` for the run."""

    place: str
    """A category of the break-down, QUEUE or OUTSIDE."""
    text: str
    holds: Callable[[Environment], bool] = _any
    security: str = ""
    """What it costs in security; empty if nothing."""

    def __str__(self) -> str:
        """Say it, never without its price."""
        return self.text + (f" (costs security: {self.security})" * bool(self.security))


_SLOW_STATEMENTS: Final = (
    "looking at which statements remain (open the break-down) and at the distance to "
    "the database"
)
_SWITCH_ON: Final = (
    "[cache] backend is dogpile.cache.null, so every call asks the database: "
    "oslo_cache.memcache_pool"
)
_IF_OFF: Final = (
    "if [cache] backend is dogpile.cache.null, as it is by default, "
    "oslo_cache.memcache_pool"
)

TABLE: Final = (
    Option(QUEUE, "more processes shorten the wait, as long as a processor is idle"),
    Option(QUEUE, "fewer calls at a time"),
    Option(
        OUTSIDE,
        "more processes, if all of Keystone's workers were busy and a processor idle",
        lambda environment: not of_a_service(environment),
    ),
    Option(OUTSIDE, "more workers of the service, if all were busy", of_a_service),
    Option("password_hash", "reusing tokens: each log-in checks a password"),
    Option(
        "password_hash",
        "lowering [identity] password_hash_rounds, for passwords set from then on",
        security="a stolen hash is cheaper to guess, by as much",
    ),
    Option("sql", _SWITCH_ON, _null),
    Option("sql", f"the cache is on: {_SLOW_STATEMENTS}", _cached),
    Option("sql", _IF_OFF, _unknown),
    Option("orm", f"fewer statements: {_SWITCH_ON}", _null),
    Option(
        "orm",
        "fewer statements: looking at which steps still ask the database",
        _cached,
    ),
    Option("orm", f"fewer statements: {_IF_OFF}", _unknown),
    Option("cache", "a cache server near Keystone, since each call is a round trip"),
    Option(
        "cache",
        "oslo_cache.memcache_pool: with Redis, each repeated look-up within a request "
        "goes over the network",
        _redis,
    ),
    Option("revocation", "fewer live revocation events: a shorter [token] expiration"),
    Option("revocation", "[revoke] caching left on"),
    Option(
        "revocation",
        "fewer token deletions",
        security="what is not revoked stays valid until it expires",
    ),
    Option(
        "token_crypto",
        "the keys on a local file system, for they are read at every use; as few of "
        "them ([fernet_tokens] max_active_keys) as [token] expiration allows",
    ),
    Option(
        "other",
        "a token cache that the service's workers share ([keystone_authtoken] "
        "memcached_servers)",
        of_a_service,
    ),
    Option(
        "other",
        "a longer [keystone_authtoken] token_cache_time",
        of_a_service,
        security="the service accepts a revoked token for as long",
    ),
    Option(
        "other", "processes rather than threads, of which one runs at a time", _threaded
    ),
    Option(
        "other",
        "fewer calls: what no part claims is Keystone's own Python",
        lambda environment: not of_a_service(environment),
    ),
)


def options(place: str, environment: Environment) -> list[str]:
    """Return what may help there, given what is known of the run."""
    return [str(row) for row in TABLE if row.place == place and row.holds(environment)]
