"""A Galera cluster of two nodes, if Galera's library is installed."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pymysql
import pytest
from rich.console import Console

from keylag.demo import SAMPLE_CLOUD
from keylag.faults.drill import measure
from keylag.faults.impact import Impact
from keylag.faults.journal import FILE
from keylag.faults.planting import planted
from keylag.faults.probe import Probe
from keylag.faults.registry import FAULTS
from keylag.faults.site import SYNCED, Site
from keylag.services import select_services
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools
from keylag.tools.programs import GALERA_LIBRARY

NODES = ("mariadb", "galera")
VARIABLES = """\
SHOW GLOBAL VARIABLES WHERE variable_name LIKE 'wsrep_%'
OR variable_name = 'slave_run_triggers_for_rbr'"""
STRENGTHS = {"D8": 200, "D9": 200}
"""Milliseconds that no noise of a machine under test hides."""
KILLED_SECONDS = 10.0
"""How long a killed process may take to end."""

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose MariaDB is a node of a cluster."""
    if not Path(GALERA_LIBRARY).exists():
        pytest.skip("not installed: galera-4")
    folder: Path = tmp_path_factory.mktemp("clustered")
    options = StackOptions(cache="memcache_pool", extras=("galera",))
    services = [one for one in select_services(("galera",)) if not one.observes_only]
    with Stack(
        folder, Tools.load(), options, initial_data=SAMPLE_CLOUD, services=services
    ) as started:
        yield started


def at_node(stack: Stack, node: str, statement: str) -> list[tuple[object, ...]]:
    """Return the rows of a statement at a node, as Keystone."""
    site = Site(stack.folder, Console(quiet=True), stack)
    with (
        pymysql.connect(
            host="127.0.0.1",
            port=stack.port(node),
            user="keystone",
            password=site.secrets.database,
            database="keystone",
            autocommit=True,
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
        return list(cursor.fetchall())


def cluster_size(stack: Stack) -> str:
    """Return the number of nodes as the first one knows them."""
    ((_, size),) = at_node(stack, "mariadb", "SHOW STATUS LIKE 'wsrep_cluster_size'")
    return str(size)


def test_both_nodes_listen_on_loopback_and_have_the_users(clustered: Stack) -> None:
    pids = {one.service: one.pid for one in clustered.status()}
    addresses = {
        connection.laddr.ip
        for node in NODES
        for connection in psutil.Process(pids[node]).net_connections("inet")
    }
    counted = [at_node(clustered, node, "SELECT COUNT(*) FROM user") for node in NODES]

    assert addresses == {"127.0.0.1"}
    assert cluster_size(clustered) == "2"
    assert counted[0] == counted[1] != [(0,)]


def kill(stack: Stack, *nodes: str) -> None:
    """Kill nodes, as the kernel does without memory."""
    for one in stack.status():
        if one.service in nodes and one.pid:
            process = psutil.Process(one.pid)
            process.kill()
            process.wait(KILLED_SECONDS)


def test_a_killed_cluster_starts_again(clustered: Stack) -> None:
    kill(clustered, *NODES)

    clustered.up()

    assert clustered.is_up()
    assert cluster_size(clustered) == "2"


@pytest.mark.parametrize("key", [pytest.param("D8", marks=pytest.mark.matrix), "D9"])
def test_a_fault_slows_calls_and_leaves_no_trace(clustered: Stack, key: str) -> None:
    fault, probe = FAULTS[key], Probe(clustered)
    before = measure(probe, fault)
    tables = at_node(clustered, "galera", "SHOW TABLES")
    variables = at_node(clustered, "galera", VARIABLES)

    with planted(clustered, fault, STRENGTHS[key]):
        after = measure(probe, fault)

    assert set(Impact(before, after).slower) & {*fault.slows}
    assert at_node(clustered, "galera", "SHOW TABLES") == tables
    assert not at_node(clustered, "galera", "SHOW TRIGGERS")
    assert at_node(clustered, "galera", VARIABLES) == variables
    assert at_node(clustered, "galera", SYNCED)
    assert cluster_size(clustered) == "2"
    again = measure(probe, fault)
    assert all(one.errors == 0 for one in again.values())
    assert set(Impact(again, after).slower) & {*fault.slows}


@pytest.mark.parametrize("killed", NODES)
def test_a_fault_is_taken_back_although_a_node_was_killed(
    clustered: Stack, killed: str
) -> None:
    with planted(clustered, FAULTS["D9"]):
        kill(clustered, killed)

    clustered.up()
    assert clustered.is_up()
    assert cluster_size(clustered) == "2"
    assert not at_node(clustered, "galera", "SHOW TRIGGERS")
    assert not (clustered.folder / FILE).exists()
