"""ProxySQL between Keystone and MariaDB; starts with `keylag up --with proxysql`."""

import json
from collections.abc import Mapping
from pathlib import Path
from string import Template

from keylag.paths import DEPLOY
from keylag.services.base import Ports, Service, ServiceContext, no_variables
from keylag.services.mariadb import server_version
from keylag.state import write_private
from keylag.tools import find_program

CONFIG = DEPLOY / "proxysql" / "proxysql.cnf"
STATS_USER = "stats"
"""The exporter's account at the admin interface."""


def _folder(context: ServiceContext) -> Path:
    return context.folder / "proxysql"


def _prepare(context: ServiceContext) -> None:
    _folder(context).mkdir(exist_ok=True, mode=0o700)
    values = {
        "FOLDER": str(_folder(context)),
        "LISTEN": context.address("proxysql"),
        "ADMIN_LISTEN": context.address("proxysql-admin"),
        "ADMIN_PASSWORD": context.secrets.proxysql,
        "READER": STATS_USER,
        "READER_PASSWORD": context.secrets.exporters,
        "SERVER_HOST": context.address("mariadb").partition(":")[0],
        "SERVER_PORT": str(context.ports["mariadb"]),
        "SERVER_VERSION": server_version(context.ports["mariadb"]),
        "MONITOR_PASSWORD": context.secrets.proxysql,
        "KEYSTONE_PASSWORD": context.secrets.database,
    }
    filled = Template(CONFIG.read_text()).substitute(
        {f"KEYLAG_PROXYSQL_{name}": value for name, value in values.items()}
    )
    text = filled + _query_rules(context.options.query_cache)
    write_private(_folder(context) / CONFIG.name, text)


def _query_rules(cached: Mapping[str, int]) -> str:
    # The first matching rule applies.
    rules = (
        f"{{ rule_id = {number}, active = 1, match_pattern = {json.dumps(pattern)},"
        f" cache_ttl = {milliseconds}, apply = 1 }}"
        for number, (pattern, milliseconds) in enumerate(cached.items(), start=1)
    )
    return f"\nmysql_query_rules = ({', '.join(rules)})\n"


def _command(context: ServiceContext) -> list[str | Path]:
    return [
        find_program("proxysql"),
        "--foreground",
        # Reads the configuration at every start, not only at the first.
        "--initial",
        "--no-version-check",
        *("-c", _folder(context) / CONFIG.name),
    ]


def _healthy(ports: Ports) -> bool:
    return all(server_version(ports[name]) for name in SERVICE.ports)


SERVICE = Service(
    name="proxysql",
    ports=("proxysql", "proxysql-admin"),
    prepare=_prepare,
    command=_command,
    environment=no_variables,
    healthy=_healthy,
    advice=f"Check its configuration template, {CONFIG}.",
    depends_on=("mariadb",),
    extra="proxysql",
)
