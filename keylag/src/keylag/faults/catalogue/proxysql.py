"""A ProxySQL with one connection to the database, which another program keeps."""

from collections.abc import Iterator

from keylag.faults import parts
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.sql import ProxySql
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site

USUAL = 200
"""The limit in deploy/proxysql/proxysql.cnf."""
CLOSED_MS = 100


def _limit(connections: int) -> list[str]:
    return [
        f"UPDATE mysql_servers SET max_connections = {connections}",
        "LOAD MYSQL SERVERS TO RUNTIME",
    ]


def _changes(_: Site, open_ms: float) -> Iterator[Change]:
    yield ProxySql(_limit(1), _limit(USUAL))
    yield Helper("transactions", {"open_ms": open_ms, "closed_ms": CLOSED_MS})


FAULT = Fault(
    id="D7",
    name="proxysql",
    summary=(
        "Keystone's statements wait in ProxySQL for a connection to the database."
    ),
    mechanism=(
        "ProxySQL may open one connection to the server, and another program keeps it "
        "in transactions, again and again with 100 ms between."
    ),
    slows=(POST, GET),
    strength=Strength(300, "ms of each transaction", 1, 10_000),
    uses=uses(parts.PROXY),
    needs=(parts.PROXIED,),
    changes=_changes,
)
