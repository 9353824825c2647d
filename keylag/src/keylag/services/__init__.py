"""The servers of a stack, in the order they start: one file each, one shape."""

import shutil
from collections.abc import Collection, Mapping
from typing import Final

from keylag.services import (
    exporters,
    grafana,
    jaeger,
    keystone,
    mariadb,
    memcached,
    otel_collector,
    prometheus,
    proxysql,
    redis,
    service,
    tempo,
)
from keylag.services.base import Service
from keylag.tools import find_program

SERVICES: tuple[Service, ...] = (
    mariadb.SERVICE,
    memcached.SERVICE,
    redis.SERVICE,
    tempo.SERVICE,
    jaeger.SERVICE,
    otel_collector.SERVICE,
    prometheus.SERVICE,
    proxysql.SERVICE,
    keystone.SERVICE,
    service.SERVICE,
    exporters.SERVICE,
    grafana.SERVICE,
)
"""All that there are."""

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "proxysql": ("proxysql",),
    "service": (),
}
"""Those that a stack has only if it is asked to, and their programs on the PATH."""


WHERE_FOUND: Final = (tempo.SERVICE.name, jaeger.SERVICE.name, grafana.SERVICE.name)
"""Those that a stack has where a program of their name is on the PATH."""


def is_found(name: str) -> bool:
    """Tell whether a program is on the PATH."""
    return shutil.which(name) is not None


def chosen(extras: Collection[str]) -> tuple[Service, ...]:
    """Return the usual services, those whose program is there, and the extra ones."""
    left_out = EXTRAS.keys() - extras
    left_out |= {name for name in WHERE_FOUND if not is_found(name)}
    return tuple(one for one in SERVICES if one.name not in left_out)


def find_programs(extras: Collection[str]) -> None:
    """Look for the programs of extra services; raises ToolError if one is missing."""
    for name in extras:
        advice = f"Put it on the PATH, or do without {name}."
        for program in EXTRAS[name]:
            find_program(program, advice)
