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


def server_command(context: ServiceContext, port: int) -> list[str | Path]:
    """Return the command of a memcached at a port."""
    as_user = ["-u", "root"] if os.geteuid() == 0 else []
    return [
        context.tools.memcached,
        *("-l", HOST, "-p", str(port), "-U", "0"),
        *("-m", str(MEGABYTES), *as_user),
        *(f"--{name}={value}" for name, value in context.options.memcached.items()),
    ]


def answers(port: int) -> bool:
    """Return whether a memcached at a port answers."""
    return first_bytes(port, b"version\r\n").startswith(b"VERSION")


def _command(context: ServiceContext) -> list[str | Path]:
    return server_command(context, context.ports["memcached"])


def _healthy(ports: Ports) -> bool:
    return answers(ports["memcached"])


SERVICE = Service(
    name="memcached",
    ports=("memcached",),
    prepare=prepare_nothing,
    command=_command,
    environment=no_variables,
    healthy=_healthy,
    advice="Run `memcached -V` to check the installation.",
)
