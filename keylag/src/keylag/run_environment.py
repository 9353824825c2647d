"""What is known about the environment of a run: the load, Keystone and its cache.

Plans and targets write these facts, `keylag.call_facts` reads them.  A fact that is not
known is absent.
"""

from collections.abc import Mapping
from typing import Any, Final

Environment = Mapping[str, Any]
"""Facts of a run by the names below; numbers may be strings."""

CACHE_BACKEND: Final = "cache_backend"
"""The value of Keystone's `[cache] backend`."""
PROCESSES: Final = "processes"
"""Number of Keystone's worker processes."""
THREADS: Final = "threads_per_process"
"""Number of threads in each of Keystone's worker processes."""
VIRTUAL_USERS: Final = "virtual_users"
"""Number of virtual users of the load."""
PLAN: Final = "plan"
"""Name of the load plan."""


SERVICE_PLANS: Final = frozenset({"service-call", "object-storage"})
"""Names of the load plans whose responses come from a service."""


def is_service_load(environment: Environment) -> bool:
    """Return whether the load calls a service instead of Keystone."""
    return environment.get(PLAN) in SERVICE_PLANS


def worker_count(environment: Environment) -> int:
    """Return how many requests Keystone handles at a time; 0 if unknown."""
    return int(environment.get(PROCESSES, 0)) * int(environment.get(THREADS, 0))


def is_queueing(environment: Environment) -> bool:
    """Return whether the load has more virtual users than Keystone has workers."""
    users, servers = int(environment.get(VIRTUAL_USERS, 0)), worker_count(environment)
    return 0 < servers < users and not is_service_load(environment)
