"""HAProxy on the router of a site, before the database nodes there.

It has the port that Keystone and the exporters know as the database's.  It also passes
calls from the other site on to Keystone.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from keylag.lab.galera.node import SQL_PORT
from keylag.lab.network import Host
from keylag.services.base import (
    HOST,
    Ports,
    Service,
    ServiceContext,
    prepare_nothing,
)
from keylag.services.mariadb import server_version
from keylag.tools.programs import find_program

CONFIG: Final = """\
global
  maxconn 4000

defaults
  mode tcp
  timeout connect 10s
  timeout check {check_seconds}s
  timeout client 1h
  timeout server 1h

listen database
  bind "{host}:${{KEYLAG_HAPROXY_PORT}}"
  balance roundrobin
  option mysql-check user haproxy
{servers}
listen keystone
  bind "{router}:{keystone_port}"
  mode http
  # Keystone's server closes its connections; clients may keep theirs.
  option http-server-close
  server keystone "{host}:${{KEYLAG_KEYSTONE_PORT}}"
"""
KEYSTONE_PORT: Final = 5000
"""At the address of the router."""
SERVER: Final = "  server {name} {address}:{port} check inter 1s fall 2 rise 2\n"
FILE: Final = "haproxy.cfg"
CHECK_SECONDS: Final = 1
"""How long HAProxy waits for a node at its own site."""
FAR_CHECK_SECONDS: Final = 5
"""And for one at the other site: a check takes two round trips, or more after a lost
packet."""


def write_config(
    folder: Path,
    router: Host,
    hosts: Sequence[Host],
    check_seconds: int = CHECK_SECONDS,
) -> None:
    """Write the configuration of a site's HAProxy; raises OSError.

    `hosts` are those of the database nodes, and `check_seconds` is how long the answer
    to a check may take until a node counts as down.
    """
    servers = "".join(
        SERVER.format(name=one.name, address=one.address, port=SQL_PORT)
        for one in hosts
    )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    config = CONFIG.format(
        host=HOST,
        check_seconds=check_seconds,
        servers=servers,
        router=router.address,
        keystone_port=KEYSTONE_PORT,
    )
    (folder / FILE).write_text(config, encoding="utf-8")


def keystone_url(router: Host) -> str:
    """Return the URL of the Keystone of a site, for both sites."""
    return f"http://{router.address}:{KEYSTONE_PORT}"


def _command(context: ServiceContext) -> list[str | Path]:
    # -db: in the foreground.
    return [find_program("haproxy"), "-db", "-f", context.folder / FILE]


def _environment(context: ServiceContext) -> dict[str, str]:
    ports = {"HAPROXY": "mariadb", "KEYSTONE": "keystone"}
    return {
        f"KEYLAG_{name}_PORT": str(context.ports[port]) for name, port in ports.items()
    }


def _healthy(ports: Ports) -> bool:
    return server_version(ports["mariadb"]) != ""


SERVICE: Final = Service(
    name="haproxy",
    ports=("mariadb",),
    prepare=prepare_nothing,
    command=_command,
    environment=_environment,
    healthy=_healthy,
    advice="Check that the nodes of the site run: `keylag lab galera-wan status`.",
)
