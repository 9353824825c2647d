"""memcached, a cache backend for Keystone."""

import os
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

MEGABYTES = 64


def _command(context: ServiceContext) -> list[str | Path]:
    as_user = ["-u", "root"] if os.geteuid() == 0 else []
    return [
        context.tools.memcached,
        *("-l", HOST, "-p", str(context.ports["memcached"]), "-U", "0"),
        *("-m", str(MEGABYTES), *as_user),
        *(f"--{name}={value}" for name, value in context.options.memcached.items()),
    ]


def _healthy(ports: Ports) -> bool:
    return first_bytes(ports["memcached"], b"version\r\n").startswith(b"VERSION")


SERVICE = Service(
    name="memcached",
    ports=("memcached",),
    prepare=prepare_nothing,
    command=_command,
    environment=no_variables,
    healthy=_healthy,
    advice="Run `memcached -V` to check the installation.",
)
