"""MariaDB: Keystone's database."""

import os
from pathlib import Path

from keylag.services.base import Ports, Service, Site, nothing, talks
from keylag.state import DEPLOY, write_private

CONFIG = DEPLOY / "mariadb" / "keylag.cnf"
PROTOCOL_VERSION = 10
"""The byte after the packet header of a server's greeting."""
CREATE = """\
CREATE DATABASE IF NOT EXISTS keystone;
CREATE USER IF NOT EXISTS 'keystone'@'127.0.0.1' IDENTIFIED BY '{password}';
GRANT ALL ON keystone.* TO 'keystone'@'127.0.0.1';
CREATE USER IF NOT EXISTS 'keylag'@'127.0.0.1' IDENTIFIED BY '{password}' \
WITH MAX_USER_CONNECTIONS 2;
BEGIN NOT ATOMIC IF EXISTS (SELECT 1 FROM information_schema.tables \
WHERE table_schema = 'keystone' AND table_name = 'revocation_event') \
THEN GRANT SELECT ON keystone.revocation_event TO 'keylag'@'127.0.0.1'; END IF; END;
"""
"""Each statement is one line, as MariaDB wants it in an init file.

`keylag` is the exporter's account: it may read one table, once that is there.
"""


def folder(site: Site) -> Path:
    """Return the data folder."""
    return site.data / "mariadb"


def slow_log(site: Site) -> Path:
    """Return the slow log, which holds every statement."""
    return site.folder / "logs" / "mariadb-slow.log"


def database_url(site: Site) -> str:
    """Return the address of Keystone's database for SQLAlchemy."""
    place = f"keystone:{site.secrets.database}@{site.address('mariadb')}/keystone"
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
    write_private(
        site.data / "create.sql", CREATE.format(password=site.secrets.database)
    )


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
        f"--slow-query-log-file={slow_log(site)}",
        *(f"--{name}={value}" for name, value in site.options.mariadb.items()),
        *_as_user(),
    ]


def _healthy(ports: Ports) -> bool:
    greeting = talks(ports["mariadb"])
    return greeting[4:5] == bytes([PROTOCOL_VERSION])


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
