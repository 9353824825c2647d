"""Redis: holds the traces of OSProfiler, and is a cache if Keystone is told so."""

from pathlib import Path

from keylag.services.base import HOST, Ports, Service, Site, no_files, nothing, talks
from keylag.tools import find_program

MEGABYTES = 256
"""What it may hold; the oldest traces go first, since OSProfiler deletes none."""
TRACES = 1
"""The number of the database that traces are in; 0 is the cache's."""
KEY_VARIABLE = "OSPROFILER_HMAC_KEY"
"""Tells a client a key of Keystone's `[profiler] hmac_keys`."""
PLACE_VARIABLE = "OSPROFILER_CONNECTION_STRING"
"""Tells it the `[profiler] connection_string`, as the `osprofiler` command takes it."""


def traces_url(port: int) -> str:
    """Return where OSProfiler keeps its traces, as its drivers take it."""
    return f"redis://{HOST}:{port}/{TRACES}"


def _command(site: Site) -> list[str | Path]:
    """Return a server without a configuration file that never writes to the disk."""
    return [
        find_program("redis-server"),
        *("--bind", HOST, "--port", str(site.ports["redis"])),
        *("--save", "", "--appendonly", "no"),
        # The title would be written over the environment, by which `down` finds it.
        *("--set-proc-title", "no"),
        *("--maxmemory", f"{MEGABYTES}mb", "--maxmemory-policy", "allkeys-lru"),
    ]


def _healthy(ports: Ports) -> bool:
    return talks(ports["redis"], b"PING\r\n").startswith(b"+PONG")


SERVICE = Service(
    name="redis",
    ports=("redis",),
    prepare=no_files,
    command=_command,
    environment=nothing,
    healthy=_healthy,
    advice="Run `redis-server --version` to see whether the program itself works.",
)
