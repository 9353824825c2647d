"""mysqld_exporter: the status of a database server, with Galera's."""

from pathlib import Path
from typing import Final

from keylag.services.base import Service, ServiceContext
from keylag.services.exporters import exporter_service
from keylag.state import write_private
from keylag.tools.programs import find_program

PREFIX: Final = "mysqld-exporter-"
"""Begins the port of each; the name of the database server follows."""
PROGRAM: Final = "prometheus-mysqld-exporter"
"""Debian's name of it."""
ACCOUNT: Final = """\
[client]
user = keylag
password = "{password}"
host = {host}
port = {port}
"""
LEFT_OUT: Final = (
    "slave_status",
    "info_schema.innodb_cmp",
    "info_schema.innodb_cmpmem",
    "info_schema.query_response_time",
)
"""Collectors that are on by default, and read what no panel or rule asks for."""


def make_service(node: str, host: str, port: int) -> Service:
    """Return the exporter of a database server, by its name and address."""
    name = f"{PREFIX}{node}"

    def prepare(context: ServiceContext) -> None:
        account = ACCOUNT.format(
            password=context.secrets.exporters, host=host, port=port
        )
        write_private(context.folder / f"{name}.cnf", account)

    def command(context: ServiceContext) -> list[str | Path]:
        return [
            find_program(PROGRAM),
            f"--config.my-cnf={context.folder / f'{name}.cnf'}",
            f"--web.listen-address={context.address(name)}",
            *(f"--no-collect.{one}" for one in LEFT_OUT),
        ]

    advice = f"`{PROGRAM} --help` lists its options."
    return exporter_service(name, prepare, command, advice)
