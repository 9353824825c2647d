"""MariaDB, Keystone's database."""

import os
from pathlib import Path
from string import Template

from keylag.paths import DEPLOY
from keylag.services.base import (
    HOST,
    Ports,
    Service,
    ServiceContext,
    first_bytes,
)
from keylag.services.galera_cluster import (
    first_node_arguments,
    forget_cluster,
    make_folder,
    transfer_variables,
)
from keylag.state import write_private

CONFIG = DEPLOY / "mysql" / "keylag.cnf"
ACCOUNTS = DEPLOY / "mysql" / "accounts.sql"
PROTOCOL_VERSION = 10
"""First byte of a server's greeting after the packet header."""


def data_folder(context: ServiceContext) -> Path:
    """Return MariaDB's data folder."""
    return context.data / "mariadb"


def temporary_folder(context: ServiceContext, service: str) -> Path:
    """Return the folder of a server's temporary tables, which no other one may share.

    A MariaDB that starts deletes all temporary tables in its folder.
    """
    return context.socket_folder / f"{service}-temporary"


def slow_log(stack: Path) -> Path:
    """Return the path of a stack's slow log, which has all statements."""
    return stack / "logs" / "mariadb-slow.log"


def database_url(context: ServiceContext) -> str:
    """Return the SQLAlchemy URL of Keystone's database, or of ProxySQL before it."""
    server = "proxysql" if "proxysql" in context.options.extras else "mariadb"
    return database_url_at(context.address(server), context.secrets.database)


def database_url_at(address: str, password: str) -> str:
    """Return the SQLAlchemy URL of Keystone's database at HOST:PORT."""
    return f"mysql+pymysql://keystone:{password}@{address}/keystone?charset=utf8mb4"


def user_option() -> list[str | Path]:
    """Return the option without which MariaDB refuses to run as root."""
    return ["--user=root"] if os.geteuid() == 0 else []


def server_arguments(
    context: ServiceContext, service: str, data: Path
) -> list[str | Path]:
    """Return the program and the arguments that each MariaDB of a stack has."""
    return [
        context.tools.mariadbd,
        f"--defaults-file={CONFIG}",
        f"--datadir={data}",
        f"--tmpdir={temporary_folder(context, service)}",
        f"--socket={context.socket_folder / service}.sock",
        f"--pid-file={context.socket_folder / service}.pid",
        f"--port={context.ports[service]}",
        *user_option(),
    ]


def _prepare(context: ServiceContext) -> None:
    forget_cluster(context)
    temporary = temporary_folder(context, SERVICE.name)
    make_folder(temporary)
    if not data_folder(context).exists():
        command: list[str | Path] = [
            context.tools.mariadb_install_db,
            f"--defaults-file={CONFIG}",
            f"--datadir={data_folder(context)}",
            "--auth-root-authentication-method=socket",
            "--skip-test-db",
            *user_option(),
        ]
        context.run_helper(SERVICE.name, command, {"TMPDIR": str(temporary)})
    # MariaDB runs this at each start; existing accounts stay as they are.
    accounts = Template(ACCOUNTS.read_text()).substitute(
        KEYLAG_ACCOUNTS_HOST=HOST,
        KEYLAG_DATABASE_PASSWORD=context.secrets.database,
        KEYLAG_PROXYSQL_PASSWORD=context.secrets.proxysql,
        KEYLAG_EXPORTERS_PASSWORD=context.secrets.exporters,
    )
    write_private(context.data / "create.sql", accounts)


def _command(context: ServiceContext) -> list[str | Path]:
    return [
        *server_arguments(context, SERVICE.name, data_folder(context)),
        f"--init-file={context.data / 'create.sql'}",
        f"--slow-query-log-file={slow_log(context.folder)}",
        *first_node_arguments(context),
        *(f"--{name}={value}" for name, value in context.options.mariadb.items()),
    ]


def server_version(port: int) -> str:
    """Return the version in the greeting of a MySQL server; empty without one."""
    greeting = first_bytes(port)
    if greeting[4:5] != bytes([PROTOCOL_VERSION]):
        return ""
    return greeting[5:].partition(b"\0")[0].decode("ascii", "replace")


def _healthy(ports: Ports) -> bool:
    return server_version(ports["mariadb"]) != ""


SERVICE = Service(
    name="mariadb",
    ports=("mariadb",),
    prepare=_prepare,
    command=_command,
    environment=transfer_variables,
    healthy=_healthy,
    advice=(
        "If the data is damaged, delete the stack's folder and run the command again."
    ),
    restart_with=("galera",),
)
