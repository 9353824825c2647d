"""Real servers for the tests, each in a folder of its own, on free ports."""

import contextlib
import socket
import subprocess
import time

import pytest
from exporter_helpers import DATA, MariaDB, free_port, program

from keylag_exporters.settings import complete


@pytest.fixture(scope="session")
def data():
    return DATA


@pytest.fixture(scope="session")
def pt_query_digest():
    return program("pt-query-digest")


@pytest.fixture(scope="session")
def mariadb_server(tmp_path_factory):
    server = MariaDB(tmp_path_factory.mktemp("mariadb"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def mariadb(mariadb_server):
    """The server, running however the test before left it."""
    if mariadb_server.process.poll() is not None:
        mariadb_server.start()
    yield mariadb_server
    mariadb_server.thaw()


@pytest.fixture
def memcached_port():
    port = free_port()
    process = subprocess.Popen(
        [program("memcached"), "-l", "127.0.0.1", "-p", str(port), "-u", "nobody"]
    )
    for _ in range(100):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        time.sleep(0.05)
    yield port
    process.kill()
    process.wait()


@pytest.fixture
def samples():
    """Return a function: families to {(sample name, sorted labels): value}."""

    def read(families):
        return {
            (one.name, tuple(sorted(one.labels.items()))): one.value
            for family in families
            for one in family.samples
        }

    return read


@pytest.fixture
def settings():
    """Return a function: a kind's complete settings for a test."""
    return complete
