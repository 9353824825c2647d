"""The servers of a stack, in the order they start: one file each, one shape."""

from collections.abc import Collection, Mapping
from typing import Final

from keylag.services import (
    exporters,
    grafana,
    keystone,
    mariadb,
    memcached,
    otel_collector,
    prometheus,
    proxysql,
    redis,
    service,
)
from keylag.services.base import Service
from keylag.tools import find_program

SERVICES: tuple[Service, ...] = (
    mariadb.SERVICE,
    memcached.SERVICE,
    redis.SERVICE,
    otel_collector.SERVICE,
    prometheus.SERVICE,
    proxysql.SERVICE,
    keystone.SERVICE,
    service.SERVICE,
    exporters.SERVICE,
    *((grafana.SERVICE,) if grafana.is_there() else ()),
)
"""All that there are."""

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "proxysql": ("proxysql",),
    "service": (),
}
"""Those that a stack has only if it is asked to, and their programs on the PATH."""


def chosen(extras: Collection[str]) -> tuple[Service, ...]:
    """Return the usual services, and the extra ones named."""
    left_out = EXTRAS.keys() - extras
    return tuple(one for one in SERVICES if one.name not in left_out)


def find_programs(extras: Collection[str]) -> None:
    """Look for the programs of extra services; raises ToolError if one is missing."""
    for name in extras:
        advice = f"Put it on the PATH, or do without {name}."
        for program in EXTRAS[name]:
            find_program(program, advice)
