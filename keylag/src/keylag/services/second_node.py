"""A second node: Keystone, memcached and their exporter, as on another controller.

It starts with `keylag up --with second-node`.  Both Keystones listen at the address of
the first one, and the kernel spreads connections over them, as a load balancer would.
"""

import shlex
import sys
from pathlib import Path

from keylag.services import keystone, memcached
from keylag.services.base import (
    Ports,
    Service,
    ServiceContext,
    http_ok,
    no_variables,
    prepare_nothing,
)

NAME = keystone.SECOND_NODE
EXPORTERS = f"{NAME}-exporters"
CONFIG = """\
[memcached]
address = "{memcached}"

[uwsgi]
address = "{uwsgi}"
"""
RESOURCE = "OTEL_RESOURCE_ATTRIBUTES"


def _memcached_command(context: ServiceContext) -> list[str | Path]:
    return memcached.server_command(context, context.ports[MEMCACHED.name])


def _memcached_healthy(ports: Ports) -> bool:
    return memcached.answers(ports[MEMCACHED.name])


MEMCACHED = Service(
    name=keystone.CACHE_SERVERS[1],
    ports=(keystone.CACHE_SERVERS[1],),
    prepare=prepare_nothing,
    command=_memcached_command,
    environment=no_variables,
    healthy=_memcached_healthy,
    advice=memcached.SERVICE.advice,
    extra=NAME,
)


def _exporter_config(context: ServiceContext) -> Path:
    return context.folder / f"{EXPORTERS}.toml"


def _prepare(context: ServiceContext) -> None:
    config = CONFIG.format(
        memcached=context.address(MEMCACHED.name),
        uwsgi=keystone.stats_socket(context, NAME),
    )
    _exporter_config(context).write_text(config)


def _command(context: ServiceContext) -> list[str | Path]:
    exporter = [
        str(Path(sys.executable).with_name("keylag-exporter")),
        "all",
        f"--config={_exporter_config(context)}",
        f"--listen={context.address(EXPORTERS)}",
    ]
    return [
        *keystone.server_command(context, NAME),
        # An address of its own beside the shared one, for the health check.
        f"--http-socket={context.address(NAME)}",
        f"--attach-daemon={shlex.join(exporter)}",
    ]


def _environment(context: ServiceContext) -> dict[str, str]:
    shared = keystone.environment(context)
    attributes = (shared.get(RESOURCE), f"host.name={NAME}")
    return {
        **shared,
        RESOURCE: ",".join(filter(None, attributes)),
        **context.options.second_node,
    }


def _healthy(ports: Ports) -> bool:
    return http_ok(ports[NAME], "/v3")


SERVICE = Service(
    name=NAME,
    ports=(NAME, EXPORTERS),
    prepare=_prepare,
    command=_command,
    environment=_environment,
    healthy=_healthy,
    advice=keystone.SERVICE.advice,
    depends_on=("keystone",),
    observes_only=True,
    extra=NAME,
)
