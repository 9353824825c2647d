"""A second MariaDB, which forms a Galera cluster with the stack's own.

It starts with `keylag up --with galera`.
"""

import os
import pwd
from pathlib import Path
from typing import Final

from keylag.services.base import Ports, Service, ServiceContext
from keylag.services.galera_cluster import (
    ADVICE,
    folder,
    make_folder,
    second_node_arguments,
    transfer_variables,
)
from keylag.services.mariadb import server_arguments, server_version, temporary_folder
from keylag.state import write_private

ACCOUNT: Final = """\
SET SESSION wsrep_on = OFF;
CREATE USER IF NOT EXISTS '{user}'@localhost IDENTIFIED VIA unix_socket;
GRANT ALL ON *.* TO '{user}'@localhost;
"""
DATA: Final = "data"
"""The second node's data folder; the script of the state transfer knows it."""


def administrator() -> str:
    """Return the account of the user who runs the stack: only here, over the socket."""
    return pwd.getpwuid(os.geteuid()).pw_name


def _prepare(context: ServiceContext) -> None:
    for name in (DATA, SERVICE.name):
        make_folder(folder(context) / name)
    make_folder(temporary_folder(context, SERVICE.name))
    write_private(_account_file(context), ACCOUNT.format(user=administrator()))


def _account_file(context: ServiceContext) -> Path:
    return folder(context) / "create.sql"


def _command(context: ServiceContext) -> list[str | Path]:
    return [
        *server_arguments(context, SERVICE.name, folder(context) / DATA),
        f"--init-file={_account_file(context)}",
        "--slow-query-log=OFF",
        *second_node_arguments(context),
    ]


def _healthy(ports: Ports) -> bool:
    # It answers as soon as it has the data.
    return server_version(ports[SERVICE.name]) != ""


SERVICE = Service(
    name="galera",
    ports=(
        "galera",
        "galera-second-replication",
        "galera-second-transfer",
        # The first node is the stack's MariaDB, whose ports other stacks have too.
        "galera-first-replication",
        "galera-first-transfer",
    ),
    prepare=_prepare,
    command=_command,
    environment=transfer_variables,
    healthy=_healthy,
    advice=f"It joins the stack's MariaDB; see its log too. {ADVICE}",
    depends_on=("mariadb",),
    extra="galera",
)
