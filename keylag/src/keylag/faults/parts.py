"""Names of the parts of a stack that faults change, and conditions on stacks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from keylag.faults.model import Need
from keylag.services.base import StackOptions

CACHE: Final = "Keystone's cache"
CATALOG: Final = "the catalog"
CLUSTER: Final = "the Galera cluster"
CONNECTIONS: Final = "Keystone's database connections"
DATABASE: Final = "the database server"
DATABASE_ADDRESS: Final = "the way to the database"
FRONT: Final = "the way to Keystone"
KEYS: Final = "the key repository"
PASSWORDS: Final = "the password table"
PROCESSES: Final = "Keystone's processes and threads"
PROXY: Final = "ProxySQL"
REVOCATIONS: Final = "the revocation table"
ROLES: Final = "roles and their assignments"
SERVICE_CACHE: Final = "the token cache of the service"

_POOL: Final = "memcache_pool"
_MEMCACHED: Final = (_POOL, "memcached", "pymemcache")
_SEVERAL_THREADS: Final = 8


def _with_cache(*usable: str) -> Callable[[StackOptions], StackOptions]:
    return lambda options: (
        options if options.cache in usable else replace(options, cache=_POOL)
    )


def _with_extra(name: str) -> Callable[[StackOptions], StackOptions]:
    return lambda options: (
        options
        if name in options.extras
        else replace(options, extras=tuple(sorted((*options.extras, name))))
    )


def _with_threads(options: StackOptions) -> StackOptions:
    if options.threads >= _SEVERAL_THREADS:
        return options
    return replace(options, processes=1, threads=2 * _SEVERAL_THREADS)


CACHED = Need(
    _with_cache(*_MEMCACHED),
    "Start the stack with a cache on memcached: `keylag up --cache memcache_pool`.",
)
POOLED = Need(
    _with_cache(_POOL),
    "Start the stack with Keystone's usual client of memcached: "
    "`keylag up --cache memcache_pool`.",
)
CLUSTERED = Need(
    _with_extra("galera"),
    "Start the stack with a Galera cluster: `keylag up --with galera`.",
)
NODES = Need(
    _with_extra("second-node"),
    "Start the stack with a second node: `keylag up --with second-node`.",
)
PROXIED = Need(
    _with_extra("proxysql"),
    "Start the stack with ProxySQL: `keylag up --with proxysql`.",
)
THREADED = Need(
    _with_threads,
    "Start the stack with several threads in a process: "
    "`keylag up --processes 1 --threads 16`.",
)
WITH_SERVICE = Need(
    _with_extra("service"),
    "Start the stack with the sample service: `keylag up --with service`.",
)
