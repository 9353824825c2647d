"""MariaDB: Keystone's database."""

import os
from pathlib import Path
from string import Template

from keylag.services.base import HOST, Ports, Service, Site, nothing, talks
from keylag.state import DEPLOY, write_private

CONFIG = DEPLOY / "mysql" / "keylag.cnf"
ACCOUNTS = DEPLOY / "mysql" / "accounts.sql"
PROTOCOL_VERSION = 10
"""The byte after the packet header of a server's greeting."""


def folder(site: Site) -> Path:
    """Return the data folder."""
    return site.data / "mariadb"


def slow_log(stack: Path) -> Path:
    """Return the slow log of a stack's folder, which holds every statement."""
    return stack / "logs" / "mariadb-slow.log"


def database_url(site: Site) -> str:
    """Return the address of Keystone's database for SQLAlchemy, or its proxy's."""
    server = "proxysql" if "proxysql" in site.options.extras else "mariadb"
    place = f"keystone:{site.secrets.database}@{site.address(server)}/keystone"
    return f"mysql+pymysql://{place}?charset=utf8mb4"


def _as_user() -> list[str | Path]:
    """Return what makes a server that refuses to run as root do so."""
    return ["--user=root"] if os.geteuid() == 0 else []


def _prepare(site: Site) -> None:
    """Make the data folder; only root over the socket may administer it."""
    if not folder(site).exists():
        command: list[str | Path] = [
            site.tools.mariadb_install_db,
            f"--defaults-file={CONFIG}",
            f"--datadir={folder(site)}",
            "--auth-root-authentication-method=socket",
            "--skip-test-db",
            *_as_user(),
        ]
        site.once("mariadb", command, {})
    # Read at each start; once the account exists it changes nothing.
    accounts = Template(ACCOUNTS.read_text()).substitute(
        KEYLAG_ACCOUNTS_HOST=HOST,
        KEYLAG_DATABASE_PASSWORD=site.secrets.database,
        KEYLAG_PROXYSQL_PASSWORD=site.secrets.proxysql,
        KEYLAG_EXPORTERS_PASSWORD=site.secrets.exporters,
    )
    write_private(site.data / "create.sql", accounts)


def _command(site: Site) -> list[str | Path]:
    return [
        site.tools.mariadbd,
        f"--defaults-file={CONFIG}",
        f"--datadir={folder(site)}",
        f"--tmpdir={site.run}",
        f"--socket={site.run / 'mariadb.sock'}",
        f"--pid-file={site.run / 'mariadb.pid'}",
        f"--port={site.ports['mariadb']}",
        f"--init-file={site.data / 'create.sql'}",
        f"--slow-query-log-file={slow_log(site.folder)}",
        *(f"--{name}={value}" for name, value in site.options.mariadb.items()),
        *_as_user(),
    ]


def greets(port: int) -> str:
    """Return the version that a server of this protocol says, or nothing."""
    greeting = talks(port)
    if greeting[4:5] != bytes([PROTOCOL_VERSION]):
        return ""
    return greeting[5:].partition(b"\0")[0].decode("ascii", "replace")


def _healthy(ports: Ports) -> bool:
    return greets(ports["mariadb"]) != ""


SERVICE = Service(
    name="mariadb",
    ports=("mariadb",),
    prepare=_prepare,
    command=_command,
    environment=nothing,
    healthy=_healthy,
    advice=(
        "If the data is damaged, delete the stack's folder and run the command again."
    ),
)
