"""Two Keystones with a memcached each, at one address."""

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from keylag.demo import SAMPLE_CLOUD
from keylag.diagnosis.prometheus import Prometheus
from keylag.faults.drill import measure
from keylag.faults.planting import planted
from keylag.faults.probe import Probe
from keylag.faults.registry import FAULTS
from keylag.faults.site import Site
from keylag.services.base import HOST
from keylag.services.keystone import cache_servers
from keylag.stack import Stack, StackOptions
from keylag.tools import Tools

EXTRAS = ("second-node",)
SERVER_NAMES = ("memcached", "second-memcached")
CALLS = "sum by (host_name) (http_server_request_duration_seconds_count)"
LISTS = "count by (keystone_cache_servers) (keystone_configuration_info)"
SERVERS = "count by (instance) (memcached_up == 1)"
FILLED = "sum by (instance) (memcached_current_items) > 0"
SECONDS = 90
"""How long Prometheus may take to have what has changed, and only that."""

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with a second node."""
    folder: Path = tmp_path_factory.mktemp("nodes")
    options = StackOptions(cache="memcache_pool", extras=EXTRAS)
    with Stack(folder, Tools.load(), options, initial_data=SAMPLE_CLOUD) as started:
        yield started


def by_label(stack: Stack, query: str) -> dict[str, float]:
    """Return the values of a query by its only label."""
    found = Prometheus(stack.url("prometheus")).query(query, time.time())
    return {"".join(one.labels.values()): one.value for one in found}


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def has_lists(stack: Stack, *lists: str) -> bool:
    """Return whether these are the lists of cache servers, of two workers each."""
    found = by_label(stack, LISTS)
    ports = {
        ",".join(one.rpartition(":")[2] for one in servers.split(",")): workers
        for servers, workers in found.items()
    }
    return ports == {one: 4 / len(lists) for one in lists}


def count_misses(stack: Stack, probe: Probe) -> int:
    """Return how many look-ups in the caches miss during a measurement."""
    before = _misses(stack)
    measure(probe, FAULTS["C9"])
    return _misses(stack) - before


def _misses(stack: Stack) -> int:
    return sum(_misses_of(stack.port(name)) for name in SERVER_NAMES)


def _misses_of(port: int) -> int:
    with socket.create_connection((HOST, port)) as server:
        server.sendall(b"stats\r\n")
        lines = iter(server.makefile("rb").readline, b"END\r\n")
        found = dict(line.split(maxsplit=2)[1:] for line in lines)
    return int(found[b"get_misses"])


def test_both_nodes_answer_at_one_address_and_share_the_cache(two_nodes: Stack) -> None:
    Probe(two_nodes).measure(2)

    both = ",".join(str(two_nodes.port(name)) for name in SERVER_NAMES)
    wait_for(lambda: len(by_label(two_nodes, CALLS)) == len(EXTRAS) + 1)
    wait_for(lambda: has_lists(two_nodes, both))
    assert all(by_label(two_nodes, CALLS).values())
    assert "second-node" in by_label(two_nodes, CALLS)
    wait_for(lambda: len(by_label(two_nodes, FILLED)) == len(SERVER_NAMES))


def test_each_memcached_has_an_exporter(two_nodes: Stack) -> None:
    wait_for(
        lambda: len(by_label(two_nodes, SERVERS)) == len(cache_servers(two_nodes.ports))
    )


@pytest.mark.matrix
def test_different_lists_miss_and_leave_no_trace(two_nodes: Stack) -> None:
    """Each node looks up what the other one has stored; the time depends on noise."""
    fault, probe = FAULTS["C9"], Probe(two_nodes)
    ports = [two_nodes.port(name) for name in SERVER_NAMES]
    measure(probe, fault)
    before, options = count_misses(two_nodes, probe), two_nodes.options

    with planted(two_nodes, fault):
        during = count_misses(two_nodes, probe)
        wait_for(lambda: has_lists(two_nodes, *map(str, ports)))

    assert during > 1.2 * before
    assert Site(two_nodes.folder, Console(quiet=True), two_nodes).options == options
    assert two_nodes.is_up()
    assert count_misses(two_nodes, probe) < during


def test_the_second_node_stops_when_it_is_no_longer_selected(two_nodes: Stack) -> None:
    with Stack(
        two_nodes.folder, two_nodes.tools, StackOptions(), initial_data=SAMPLE_CLOUD
    ) as usual:
        names = {one.service for one in usual.status()}

        assert not names & {"second-node", "second-memcached"}
        assert usual.is_up()
