"""keylag-exporter: metrics of the servers, the host and the way to Keystone."""

import sys
from pathlib import Path

from keylag.services.base import Ports, Service, ServiceContext, http_ok, no_variables
from keylag.services.keystone import stats_socket
from keylag.services.mariadb import slow_log
from keylag.services.proxysql import STATS_USER
from keylag.state import write_private

CONFIG = """\
[slow-log]
file = "{slow_log}"
state = "{folder}/slow-log.json"
from-start = true

[revocations]
port = {mariadb}
password-file = "{folder}/password"
interval = 5

[memcached]
address = "{memcached}"

[uwsgi]
address = "{uwsgi}"

[host]

[mysql]
port = {mariadb}
password-file = "{folder}/password"

[probe]
url = "http://{keystone}/v3"
"""
PROXYSQL_CONFIG = """
[proxysql]
port = {port}
user = "{user}"
password-file = "{folder}/password"
interval = 1
"""
"""Prometheus scrapes the stack once a second."""


def _folder(context: ServiceContext) -> Path:
    return context.folder / "exporters"


def _prepare(context: ServiceContext) -> None:
    folder = _folder(context)
    folder.mkdir(exist_ok=True)
    write_private(folder / "password", context.secrets.exporters)
    config = CONFIG.format(
        folder=folder,
        slow_log=slow_log(context.folder),
        mariadb=context.ports["mariadb"],
        memcached=context.address("memcached"),
        uwsgi=stats_socket(context),
        keystone=context.address("keystone"),
    )
    if "proxysql" in context.options.extras:
        port = context.ports["proxysql-admin"]
        config += PROXYSQL_CONFIG.format(folder=folder, port=port, user=STATS_USER)
    (folder / "config.toml").write_text(config)


def _command(context: ServiceContext) -> list[str | Path]:
    return [
        Path(sys.executable).with_name("keylag-exporter"),
        "all",
        f"--config={_folder(context) / 'config.toml'}",
        f"--listen={context.address('exporters')}",
    ]


def _healthy(ports: Ports) -> bool:
    # A scrape would query all servers.
    return http_ok(ports["exporters"], "/")


SERVICE = Service(
    name="exporters",
    ports=("exporters",),
    prepare=_prepare,
    command=_command,
    environment=no_variables,
    healthy=_healthy,
    advice="`keylag-exporter all --help` explains its configuration.",
    depends_on=("mariadb", "memcached"),
    observes_only=True,
)
