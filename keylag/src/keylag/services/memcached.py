"""memcached: the shared cache that Keystone may be told to use."""

import os
from pathlib import Path

from keylag.services.base import HOST, Ports, Service, Site, no_files, nothing, talks

MEGABYTES = 64


def _command(site: Site) -> list[str | Path]:
    as_user = ["-u", "root"] if os.geteuid() == 0 else []
    return [
        site.tools.memcached,
        *("-l", HOST, "-p", str(site.ports["memcached"]), "-U", "0"),
        *("-m", str(MEGABYTES), *as_user),
    ]


def _healthy(ports: Ports) -> bool:
    return talks(ports["memcached"], b"version\r\n").startswith(b"VERSION")


SERVICE = Service(
    name="memcached",
    ports=("memcached",),
    prepare=no_files,
    command=_command,
    environment=nothing,
    healthy=_healthy,
    advice="Run `memcached -V` to see whether the program itself works.",
)
