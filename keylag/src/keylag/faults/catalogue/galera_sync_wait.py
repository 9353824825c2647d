"""Reads that wait for the other node of a Galera cluster."""

from collections.abc import Iterator

from keylag.faults import cluster_writes, parts
from keylag.faults.changes.helper import Helper
from keylag.faults.changes.options import Options
from keylag.faults.changes.second_node import SecondNode
from keylag.faults.model import GET, POST, Change, Fault, Strength, uses
from keylag.faults.site import Site
from keylag.services.galera_cluster import cluster_address


def _join_at(address: str) -> str:
    return f"SET GLOBAL wsrep_cluster_address = '{cluster_address(address)}'"


def _changes(site: Site, delay_ms: float) -> Iterator[Change]:
    far, near = site.free_address(), site.address("galera-first-replication")
    yield Helper("relay", {"listen": far, "upstream": near, "delay_ms": delay_ms})
    yield SecondNode([_join_at(far)], [_join_at(near)])
    yield cluster_writes.table()
    yield cluster_writes.writes()
    yield Options(environment={"OS_DATABASE__MYSQL_WSREP_SYNC_WAIT": "1"})


FAULT = Fault(
    id="D8",
    name="galera-sync-wait",
    summary="Each read waits until its node knows what the far other node has written.",
    mechanism=(
        "The second node joins through a relay that delays what passes; a client "
        "writes all the time, and Keystone restarts with "
        "`[database] mysql_wsrep_sync_wait = 1`."
    ),
    slows=(POST, GET),
    strength=Strength(40, "ms in each direction", 0, 1000),
    uses=uses(parts.CLUSTER, parts.CONNECTIONS),
    needs=(parts.CLUSTERED,),
    changes=_changes,
)
