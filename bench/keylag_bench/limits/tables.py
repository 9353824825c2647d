"""The tables of parts, calls and tunings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from keylag.experiment.settings import Arm

OUTSIDE: Final = "outside"
"""The place of time outside of Keystone: client, connection, uWSGI."""

Seconds = Mapping[str, float]
"""Seconds by place: a category of keylag.phases, or OUTSIDE."""


@dataclass(frozen=True)
class Hash:
    """How a password is hashed."""

    title: str
    algorithm: str
    rounds: int
    runs: int
    """Runs in a turn."""
    user_row: int = 0
    """The row of a user in the users file; all have the same roles."""


HASHES: Final[Mapping[str, Hash]] = {
    "default": Hash("bcrypt of cost 12, Keystone's default", "bcrypt", 12, 1),
    "bcrypt_10": Hash("bcrypt of cost 10", "bcrypt", 10, 2),
    "bcrypt_4": Hash("bcrypt of cost 4, its least", "bcrypt", 4, 20),
    "least": Hash(
        "one round of pbkdf2_sha512, Keystone's least", "pbkdf2_sha512", 1, 20, 30
    ),
}

FRAMEWORK: Final = "framework"
"""The part that a client measures; the others are measured inside Keystone."""


@dataclass(frozen=True)
class Part:
    """A part of one warm call."""

    title: str
    category: str
    """The category of its time; that of FRAMEWORK is measured."""
    runs: int
    """Runs in a turn."""


PARTS: Final[Mapping[str, Part]] = {
    FRAMEWORK: Part(
        "framework: `GET /v3` through uWSGI, Flask and all middleware", "other", 10
    ),
    **{
        f"hash_{name}": Part(f"password hash: {one.title}", "password_hash", one.runs)
        for name, one in HASHES.items()
    },
    "encrypt": Part("Fernet: make the token", "token_crypto", 100),
    "cache": Part(
        "cache: read a validated token from memcached, one round trip", "cache", 100
    ),
    "user": Part("SQL: read the user with password and options", "sql", 20),
    "render": Part("JSON: write the body of the response", "other", 100),
}


@dataclass(frozen=True)
class Setting:
    """A change, the experiments that measured it, and its risk."""

    change: str
    experiments: tuple[str, ...]
    """Plans in `experiments/`."""
    risk: str


@dataclass(frozen=True)
class Call:
    """A token call, and the parts of the least one."""

    title: str
    method: str
    parts: tuple[str, ...]
    requests: int
    """Requests in a turn."""
    hash: str = "default"
    """The hash of the user's password, a key of HASHES."""
    settings: tuple[Setting, ...] = ()
    """What it needs, with every tuning."""


_ISSUE = (FRAMEWORK, "user", "cache", "encrypt", "render")
CALLS: Final[Mapping[str, Call]] = {
    # The cache has a validated token by its text, so nothing reads it by Fernet.
    "GET": Call("GET, a validation", "GET", (FRAMEWORK, "cache", "render"), 10),
    "POST": Call(
        "POST, a log-in with Keystone's default hash",
        "POST",
        (*_ISSUE, "hash_default"),
        2,
    ),
    "POST-least": Call(
        "POST, a log-in with Keystone's least hash",
        "POST",
        (*_ISSUE, "hash_least"),
        6,
        "least",
        (
            Setting(
                "`[identity] password_hash_algorithm = pbkdf2_sha512` and "
                "`password_hash_rounds = 1`; bcrypt with fewer rounds is between",
                ("password-cost",),
                "Whoever steals the hashes finds most passwords. It is here to show "
                "what is left beside the hash: do not use it.",
            ),
        ),
    ),
}


@dataclass(frozen=True)
class Tuning:
    """How far a Keystone is tuned."""

    title: str
    arm: Arm
    settings: tuple[Setting, ...] = ()
    """What it changes in the tuning before."""
    before: str = ""
    """The tuning that it is compared with; empty for the first one."""
    query: str = ""
    """Of each request."""


PATCHES: Final = (
    "pymemcache-timeout",
    "revocation-chains",
    "redis-request-cache",
    "scrypt-rounds",
    "stale-request-context",
)
"""All fixes for the path of a token in docs/upstream."""

TUNINGS: Final[Mapping[str, Tuning]] = {
    "default": Tuning(
        "Keystone's defaults, no cache",
        Arm(cache="null", processes=1),
    ),
    "now": Tuning(
        "now: memcache_pool, warm",
        Arm(cache="memcache_pool"),
        (
            Setting(
                "`[cache] backend = oslo_cache.memcache_pool`",
                ("cache-backends", "cache-backends-post"),
                "Whoever can write to memcached can forge tokens: keep it in a closed "
                "network.",
            ),
        ),
        "default",
    ),
    "best": Tuning(
        "dogpile.cache.memcached, warm",
        Arm(cache="memcached"),
        (
            Setting(
                "`[cache] backend = dogpile.cache.memcached`",
                ("cache-backends", "cache-backends-post", "hung-cache"),
                "Each thread has a connection of its own, and finds out by itself "
                "that a server is down.",
            ),
        ),
        "now",
    ),
    "nocatalog": Tuning(
        "dogpile.cache.memcached, and the client asks for no catalog",
        Arm(cache="memcached"),
        (
            Setting(
                "`?nocatalog` in the request, or `include_service_catalog = false` of "
                "auth_token",
                ("catalog",),
                "The service or client has to know the endpoints that it calls.",
            ),
        ),
        "best",
        "?nocatalog",
    ),
    "patched": Tuning(
        "dogpile.cache.memcached, with the patches",
        Arm(
            cache="memcached",
            module="upstream:application",
            environment={"UPSTREAM_FIX": ",".join(PATCHES)},
        ),
        (
            Setting(
                "[the fixes](upstream/README.md)",
                ("upstream-context",),
                "Code that its projects have not accepted yet.",
            ),
        ),
        "best",
    ),
}
REFERENCE: Final = "patched"
"""The tuning whose servers the parts are measured with."""
