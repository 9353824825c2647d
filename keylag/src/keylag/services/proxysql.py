"""ProxySQL between Keystone and MariaDB, for whoever asks for it."""

import json
from collections.abc import Mapping
from pathlib import Path
from string import Template

from keylag.services.base import Ports, Service, Site, nothing
from keylag.services.mariadb import greets
from keylag.state import DEPLOY, write_private
from keylag.tools import find_program

CONFIG = DEPLOY / "proxysql" / "proxysql.cnf"
READER = "stats"
"""The exporter's account at the admin port."""


def _folder(site: Site) -> Path:
    return site.folder / "proxysql"


def _prepare(site: Site) -> None:
    """Fill in the configuration; it holds passwords."""
    _folder(site).mkdir(exist_ok=True, mode=0o700)
    values = {
        "FOLDER": str(_folder(site)),
        "LISTEN": site.address("proxysql"),
        "ADMIN_LISTEN": site.address("proxysql-admin"),
        "ADMIN_PASSWORD": site.secrets.proxysql,
        "READER": READER,
        "READER_PASSWORD": site.secrets.exporters,
        "SERVER_HOST": site.address("mariadb").partition(":")[0],
        "SERVER_PORT": str(site.ports["mariadb"]),
        "SERVER_VERSION": greets(site.ports["mariadb"]),
        "MONITOR_PASSWORD": site.secrets.proxysql,
        "KEYSTONE_PASSWORD": site.secrets.database,
    }
    filled = Template(CONFIG.read_text()).substitute(
        {f"KEYLAG_PROXYSQL_{name}": value for name, value in values.items()}
    )
    text = filled + _query_rules(site.options.query_cache)
    write_private(_folder(site) / CONFIG.name, text)


def _query_rules(cached: Mapping[str, int]) -> str:
    """Write what is kept as rules of ProxySQL, the first that matches decides."""
    rules = (
        f"{{ rule_id = {number}, active = 1, match_pattern = {json.dumps(pattern)},"
        f" cache_ttl = {milliseconds}, apply = 1 }}"
        for number, (pattern, milliseconds) in enumerate(cached.items(), start=1)
    )
    return f"\nmysql_query_rules = ({', '.join(rules)})\n"


def _command(site: Site) -> list[str | Path]:
    return [
        find_program("proxysql"),
        "--foreground",
        # The configuration counts at every start, not only at the first.
        "--initial",
        "--no-version-check",
        *("-c", _folder(site) / CONFIG.name),
    ]


def _healthy(ports: Ports) -> bool:
    return all(greets(ports[name]) for name in SERVICE.ports)


SERVICE = Service(
    name="proxysql",
    ports=("proxysql", "proxysql-admin"),
    prepare=_prepare,
    command=_command,
    environment=nothing,
    healthy=_healthy,
    advice=f"Its configuration is made from {CONFIG}.",
    needs=("mariadb",),
)
