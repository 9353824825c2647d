"""Fixtures: real servers on free ports, a written log, and the command itself."""

import contextlib

import pytest
from exporter_helpers import DATA, Exporter, MariaDB, Memcached, find_program
from log_writer import FakeClock, LogWriter
from prometheus_client.parser import text_string_to_metric_families

from keylag_exporters.settings import resolve_settings


@pytest.fixture(scope="session")
def data():
    return DATA


@pytest.fixture(scope="session")
def pt_query_digest():
    return find_program("pt-query-digest")


@pytest.fixture
def log(tmp_path):
    return tmp_path / "slow.log"


@pytest.fixture
def writer(log):
    log.touch()
    return LogWriter(log)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(scope="session")
def mariadb_server(tmp_path_factory):
    server = MariaDB(tmp_path_factory.mktemp("mariadb"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def mariadb(mariadb_server):
    """The server; started again if the previous test stopped it."""
    if mariadb_server.process.poll() is not None:
        mariadb_server.start()
    yield mariadb_server
    mariadb_server.thaw()


@pytest.fixture
def memcached():
    server = Memcached()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def memcached_port(memcached):
    return memcached.port


@pytest.fixture
def samples():
    """A function that parses exposed text to {(sample name, sorted labels): value}."""

    def read(exposed):
        text = exposed if isinstance(exposed, bytes) else exposed.expose()
        return {
            (one.name, tuple(sorted(one.labels.items()))): one.value
            for family in text_string_to_metric_families(text.decode())
            for one in family.samples
        }

    return read


@pytest.fixture
def settings():
    """A function that returns the complete settings of a source type."""
    return resolve_settings


@pytest.fixture
def run():
    started = []

    def start(*arguments, **options):
        started.append(Exporter(*arguments, **options))
        return started[-1]

    yield start
    for one in started:
        with contextlib.suppress(ProcessLookupError):
            one.process.kill()
        one.process.wait()
        one.process.stderr.close()
