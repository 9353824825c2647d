"""A real memcached, and a missing one."""

import socket
from contextlib import ExitStack

import pytest
from pymemcache.client.base import Client

from keylag_exporters.memcached import SOURCE_TYPE
from keylag_exporters.model import UnreachableError

# Names in dashboards of the official exporter.
OFFICIAL = [
    "memcached_commands_total",
    "memcached_connections_total",
    "memcached_current_bytes",
    "memcached_current_connections",
    "memcached_current_items",
    "memcached_items_evicted_total",
    "memcached_items_reclaimed_total",
    "memcached_items_total",
    "memcached_limit_bytes",
    "memcached_malloced_bytes",
    "memcached_max_connections",
    "memcached_read_bytes_total",
    "memcached_written_bytes_total",
    "memcached_uptime_seconds",
    "memcached_version",
    "memcached_up",
    "memcached_slab_current_items",
    "memcached_slab_chunk_size_bytes",
    "memcached_slab_commands_total",
    "memcached_process_user_cpu_seconds_total",
    "memcached_connections_listener_disabled_total",
    "memcached_lru_crawler_enabled",
    "memcached_slab_lru_hits_total",
    "memcached_slab_mem_requested_bytes",
]


@pytest.fixture
def source(memcached_port, settings):
    return SOURCE_TYPE.create(
        settings(SOURCE_TYPE, {"address": f"127.0.0.1:{memcached_port}"})
    )


@pytest.mark.stack
def test_a_server_with_too_many_connections_says_so(source, samples, memcached_port):
    assert samples(source.collect())["keylag_memcached_full", ()] == 0

    with ExitStack() as held:
        reply = b"VERSION"
        while reply.startswith(b"VERSION"):
            one = socket.create_connection(("127.0.0.1", memcached_port), 5)
            held.enter_context(one)
            one.sendall(b"version\r\n")
            reply = one.recv(64)
        with pytest.raises(UnreachableError) as error:
            source.collect()

    found = samples(error.value.families)
    assert found["keylag_memcached_full", ()] == 1
    assert found["memcached_up", ()] == 0


@pytest.mark.stack
def test_statistics_have_the_official_metric_names(source, samples, memcached_port):
    client = Client(("127.0.0.1", memcached_port), default_noreply=False)
    client.set("a", "1")
    client.get("a")
    client.get("b")
    _, cas = client.gets("a")
    client.cas("a", "2", cas)
    found = samples(source.collect())
    names = {name for name, _ in found}

    def command(name, status):
        return found[
            "memcached_commands_total", (("command", name), ("status", status))
        ]

    assert set(OFFICIAL) - names == set()
    assert found["memcached_up", ()] == 1
    assert found["memcached_current_items", ()] == 1
    assert (command("get", "hit"), command("get", "miss")) == (2, 1)
    assert (command("set", "hit"), command("cas", "hit")) == (1, 1)
    client.close()


@pytest.mark.stack
def test_missing_server_exports_memcached_up_0(settings, samples):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        source = SOURCE_TYPE.create(settings(SOURCE_TYPE, {"address": address}))

        with pytest.raises(UnreachableError, match=address) as caught:
            source.collect()

    assert samples(caught.value.families) == {
        ("memcached_up", ()): 0,
        ("keylag_memcached_full", ()): 0,
    }
