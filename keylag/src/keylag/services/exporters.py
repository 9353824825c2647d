"""The exporters: what the slow log, the revocation table, memcached and uWSGI know."""

import sys
from pathlib import Path

from keylag.services.base import Ports, Service, Site, answers_http, nothing
from keylag.services.keystone import stats_socket
from keylag.services.mariadb import slow_log
from keylag.state import write_private

CONFIG = """\
[slow-log]
file = "{slow_log}"
state = "{folder}/slow-log.json"
from-start = true

[revocations]
port = {mariadb}
password-file = "{folder}/revocations.password"
interval = 5

[memcached]
address = "{memcached}"

[uwsgi]
address = "{uwsgi}"
"""


def _folder(site: Site) -> Path:
    return site.folder / "exporters"


def _prepare(site: Site) -> None:
    """Write the configuration, and the account's password in a file of its own."""
    folder = _folder(site)
    folder.mkdir(exist_ok=True)
    write_private(folder / "revocations.password", site.secrets.database)
    (folder / "config.toml").write_text(
        CONFIG.format(
            folder=folder,
            slow_log=slow_log(site),
            mariadb=site.ports["mariadb"],
            memcached=site.address("memcached"),
            uwsgi=stats_socket(site),
        )
    )


def _command(site: Site) -> list[str | Path]:
    return [
        Path(sys.executable).with_name("keylag-exporter"),
        "all",
        f"--config={_folder(site) / 'config.toml'}",
        f"--listen={site.address('exporters')}",
    ]


def _healthy(ports: Ports) -> bool:
    return answers_http(ports["exporters"], "/metrics")


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
