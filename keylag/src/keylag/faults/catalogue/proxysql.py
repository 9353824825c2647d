"""A ProxySQL with few connections to the database."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.sql import ProxySql
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

USUAL = 200
"""The limit in deploy/proxysql/proxysql.cnf."""


def _limit(connections: int) -> list[str]:
    return [
        f"UPDATE mysql_servers SET max_connections = {connections}",
        "LOAD MYSQL SERVERS TO RUNTIME",
    ]


def _changes(_: Site, connections: float) -> Iterator[Change]:
    yield ProxySql(_limit(round(connections)), _limit(USUAL))


FAULT = Fault(
    id="D7",
    name="proxysql",
    summary=(
        "Keystone's statements wait in ProxySQL for a connection to the database."
    ),
    mechanism="ProxySQL's limit of connections to the server is lowered.",
    slows=(POST, GET),
    strength=Strength(1, "connections", 1, 1000),
    uses=uses(parts.PROXY),
    needs=(parts.PROXIED,),
    clients=6,
    changes=_changes,
)
