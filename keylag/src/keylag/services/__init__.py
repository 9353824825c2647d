"""The services of a stack: one module each, with a `SERVICE`."""

import shutil
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from keylag.services import (
    diagnosis,
    exporters,
    galera,
    galera_cluster,
    grafana,
    jaeger,
    keystone,
    mariadb,
    memcached,
    otel_collector,
    prometheus,
    protected_service,
    proxysql,
    redis,
    second_node,
    tempo,
)
from keylag.services.base import Service
from keylag.tools import find_program
from keylag.tools.programs import GALERA_LIBRARY

SERVICES: tuple[Service, ...] = (
    mariadb.SERVICE,
    galera.SERVICE,
    memcached.SERVICE,
    second_node.MEMCACHED,
    redis.SERVICE,
    tempo.SERVICE,
    jaeger.SERVICE,
    otel_collector.SERVICE,
    prometheus.SERVICE,
    proxysql.SERVICE,
    keystone.SERVICE,
    second_node.SERVICE,
    protected_service.SERVICE,
    exporters.SERVICE,
    diagnosis.SERVICE,
    grafana.SERVICE,
)
"""All services in the order they start."""

EXTRA_SERVICES: Final[Mapping[str, tuple[str, ...]]] = {
    galera.SERVICE.name: (GALERA_LIBRARY,),
    "proxysql": ("proxysql",),
    second_node.NAME: (),
    "service": (),
}
"""What `keylag up --with` adds, and the programs or files that it needs."""
_ADVICE: Final = {galera.SERVICE.name: galera_cluster.ADVICE}

OPTIONAL_SERVICES: Final = (
    tempo.SERVICE.name,
    jaeger.SERVICE.name,
    grafana.SERVICE.name,
)
"""Services that a stack has if a program of their name is on the PATH."""


def is_installed(name: str) -> bool:
    """Return whether a program is on the PATH."""
    return shutil.which(name) is not None


def select_services(extras: Collection[str]) -> tuple[Service, ...]:
    """Return the usual services, the installed optional ones, and the extra ones."""
    return installed_services(one for one in SERVICES if one.extra in {"", *extras})


def installed_services(services: Iterable[Service]) -> tuple[Service, ...]:
    """Return the services without the optional ones that are not installed."""
    missing = {name for name in OPTIONAL_SERVICES if not is_installed(name)}
    return tuple(one for one in services if one.name not in missing)


def require_programs(extras: Collection[str]) -> None:
    """Raise ToolError if a program or file of an extra service is missing."""
    for name in extras:
        on_path = f"Put it on the PATH, or start the stack without {name}."
        advice = _ADVICE.get(name, on_path)
        for program in EXTRA_SERVICES[name]:
            find_program(program, advice)
