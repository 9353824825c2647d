"""Names of the parts of a stack that faults change, and conditions on stacks."""

from typing import Final

from keylag.faults.model import Need

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

_MEMCACHED: Final = ("memcache_pool", "memcached", "pymemcache")

CACHED = Need(
    lambda options: options.cache in _MEMCACHED,
    "Start the stack with a cache on memcached: `keylag up --cache memcache_pool`.",
)
POOLED = Need(
    lambda options: options.cache == "memcache_pool",
    "Start the stack with Keystone's usual client of memcached: "
    "`keylag up --cache memcache_pool`.",
)
CLUSTERED = Need(
    lambda options: "galera" in options.extras,
    "Start the stack with a Galera cluster: `keylag up --with galera`.",
)
PROXIED = Need(
    lambda options: "proxysql" in options.extras,
    "Start the stack with ProxySQL: `keylag up --with proxysql`.",
)
WITH_SERVICE = Need(
    lambda options: "service" in options.extras,
    "Start the stack with the sample service: `keylag up --with service`.",
)
