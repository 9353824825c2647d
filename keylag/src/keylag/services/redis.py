"""Redis, which stores OSProfiler's traces and is a cache backend for Keystone."""

from pathlib import Path

from keylag.services.base import (
    HOST,
    Ports,
    Service,
    ServiceContext,
    first_bytes,
    no_variables,
    prepare_nothing,
)
from keylag.tools import find_program

MEGABYTES = 256
"""Memory limit; Redis evicts old traces, which OSProfiler never deletes."""
TRACES_DATABASE = 1
"""Number of the database with traces; 0 is the cache."""
HMAC_KEY_VARIABLE = "OSPROFILER_HMAC_KEY"
"""Variable with one of the keys in Keystone's `[profiler] hmac_keys`."""
CONNECTION_VARIABLE = "OSPROFILER_CONNECTION_STRING"
"""Variable with Keystone's `[profiler] connection_string`."""


def traces_url(port: int) -> str:
    """Return the connection string of OSProfiler's traces."""
    return f"redis://{HOST}:{port}/{TRACES_DATABASE}"


def _command(context: ServiceContext) -> list[str | Path]:
    # Redis runs without persistence.
    return [
        find_program("redis-server"),
        *("--bind", HOST, "--port", str(context.ports["redis"])),
        *("--save", "", "--appendonly", "no"),
        # A process title would overwrite the environment, which identifies the process.
        *("--set-proc-title", "no"),
        *("--maxmemory", f"{MEGABYTES}mb", "--maxmemory-policy", "allkeys-lru"),
    ]


def _healthy(ports: Ports) -> bool:
    return first_bytes(ports["redis"], b"PING\r\n").startswith(b"+PONG")


SERVICE = Service(
    name="redis",
    ports=("redis",),
    prepare=prepare_nothing,
    command=_command,
    environment=no_variables,
    healthy=_healthy,
    advice="Run `redis-server --version` to check the installation.",
)
