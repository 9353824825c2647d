"""keylag-exporter: metrics of the servers, the host and the way to Keystone."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from keylag.services.base import (
    HOST,
    Ports,
    Service,
    ServiceContext,
    http_ok,
    no_variables,
)
from keylag.services.keystone import stats_socket
from keylag.services.mariadb import slow_log
from keylag.services.proxysql import STATS_USER
from keylag.state import write_private

NODE_PREFIX: Final = "exporters-"
"""Begins the port of an exporter for a database node, whose name follows."""
SLOW_LOG: Final = """\
[slow-log]
file = "{slow_log}"
state = "{folder}/slow-log.json"
from-start = true
"""
"""The slow log of a database server."""
MYSQL: Final = """\
[mysql]
host = "{host}"
port = {port}
password-file = "{folder}/password"
"""
"""The status of a database server."""
KEYSTONE_NODE: Final = """\
[revocations]
port = {mariadb}
password-file = "{folder}/password"
interval = 5

[memcached]
address = "{memcached}"

[uwsgi]
address = "{uwsgi}"

[host]

[processes]
groups = "{groups}"
"""
"""What belongs to a Keystone, its cache and its host."""
GROUPS: Final = {
    "service": "uwsgi.*deploy/service",
    "keystone": "bin/uwsgi",
    "jmeter": "ApacheJMeter",
    "cassandra": "CassandraDaemon",
    "ycsb": "site.ycsb",
}
"""Groups of processes whose programs run other things, too, by command line."""
PROBE: Final = """\
[probe]
url = "http://{keystone}/v3"
"""
"""What a client sees."""
PROXYSQL: Final = """\
[proxysql]
port = {port}
user = "{user}"
password-file = "{folder}/password"
interval = 1
"""
"""Prometheus scrapes the stack once a second."""


def exporter_service(
    name: str,
    prepare: Callable[[ServiceContext], None],
    command: Callable[[ServiceContext], list[str | Path]],
    advice: str,
) -> Service:
    """Return an exporter, of Keylag or not, whose one port has its name."""

    def healthy(ports: Ports) -> bool:
        # A scrape would query all servers.
        return http_ok(ports[name], "/")

    return Service(
        name=name,
        ports=(name,),
        prepare=prepare,
        command=command,
        environment=no_variables,
        healthy=healthy,
        advice=advice,
        depends_on=("mariadb", "memcached"),
        observes_only=True,
    )


def make_service(name: str, config: Callable[[ServiceContext, Path], str]) -> Service:
    """Return a keylag-exporter whose one port has its name.

    `config` returns its configuration, and writes what that names to the folder that
    it gets, which has the exporter's state as well.
    """

    def prepare(context: ServiceContext) -> None:
        folder = context.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(config(context, folder), encoding="utf-8")

    def command(context: ServiceContext) -> list[str | Path]:
        return [
            Path(sys.executable).with_name("keylag-exporter"),
            "all",
            f"--config={context.folder / name / 'config.toml'}",
            f"--listen={context.address(name)}",
        ]

    advice = "`keylag-exporter all --help` explains its configuration."
    return exporter_service(name, prepare, command, advice)


def slow_log_of(folder: Path, log: Path) -> str:
    """Return the configuration for a slow log."""
    return SLOW_LOG.format(folder=folder, slow_log=log)


def keystone_node(context: ServiceContext, folder: Path) -> str:
    """Return the configuration for Keystone, its cache and its host.

    It writes the password of the exporters' account, for all parts that need it.
    """
    write_private(folder / "password", context.secrets.exporters)
    return KEYSTONE_NODE.format(
        folder=folder,
        mariadb=context.ports["mariadb"],
        memcached=context.address("memcached"),
        uwsgi=stats_socket(context),
        groups=";".join(f"{name}={pattern}" for name, pattern in GROUPS.items()),
    )


def _everything(context: ServiceContext, folder: Path) -> str:
    log = slow_log(context.folder)
    parts = [
        slow_log_of(folder, log),
        MYSQL.format(folder=folder, host=HOST, port=context.ports["mariadb"]),
        keystone_node(context, folder),
        PROBE.format(keystone=context.address("keystone")),
    ]
    if "proxysql" in context.options.extras:
        port = context.ports["proxysql-admin"]
        parts.append(PROXYSQL.format(folder=folder, port=port, user=STATS_USER))
    return "\n".join(parts)


SERVICE = make_service("exporters", _everything)
