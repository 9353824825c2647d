"""The exporters: what the database, the proxy, the cache, uWSGI and one table know."""

import sys
from pathlib import Path

from keylag.services.base import Ports, Service, Site, answers_http, nothing
from keylag.services.keystone import stats_socket
from keylag.services.mariadb import slow_log
from keylag.services.proxysql import READER
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
"""
PROXYSQL_CONFIG = """
[proxysql]
port = {port}
user = "{user}"
password-file = "{folder}/password"
interval = 1
"""
"""Prometheus scrapes the stack once a second."""


def _folder(site: Site) -> Path:
    return site.folder / "exporters"


def _prepare(site: Site) -> None:
    """Write the configuration, and the accounts' password in a file of its own."""
    folder = _folder(site)
    folder.mkdir(exist_ok=True)
    write_private(folder / "password", site.secrets.exporters)
    config = CONFIG.format(
        folder=folder,
        slow_log=slow_log(site.folder),
        mariadb=site.ports["mariadb"],
        memcached=site.address("memcached"),
        uwsgi=stats_socket(site),
    )
    if "proxysql" in site.options.extras:
        port = site.ports["proxysql-admin"]
        config += PROXYSQL_CONFIG.format(folder=folder, port=port, user=READER)
    (folder / "config.toml").write_text(config)


def _command(site: Site) -> list[str | Path]:
    return [
        Path(sys.executable).with_name("keylag-exporter"),
        "all",
        f"--config={_folder(site) / 'config.toml'}",
        f"--listen={site.address('exporters')}",
    ]


def _healthy(ports: Ports) -> bool:
    """Tell whether the exporter serves; a scrape would ask every server."""
    return answers_http(ports["exporters"], "/")


SERVICE = Service(
    name="exporters",
    ports=("exporters",),
    prepare=_prepare,
    command=_command,
    environment=nothing,
    healthy=_healthy,
    advice="`keylag-exporter all --help` explains its settings.",
    needs=("mariadb", "memcached"),
    watches=True,
)
