"""Servers that freeze, stop, restart or refuse the account."""

import time

import pytest
import test_proxysql
import test_revocations
from exporter_helpers import LOGS, wait_until

SHORT_SCRAPE_TIMEOUT = {"X-Prometheus-Scrape-Timeout-Seconds": "2"}


@pytest.fixture(params=["revocations", "proxysql", "memcached", "mysql"])
def source(request):
    return request.param


@pytest.fixture
def server(request, source, data):
    """The server that the source reads."""
    if source == "memcached":
        yield request.getfixturevalue("memcached")
        return
    mariadb = request.getfixturevalue("mariadb")
    if source == "proxysql":
        test_proxysql.load_recorded_tables(mariadb, data)
    else:
        test_revocations.create(mariadb)
    yield mariadb
    mariadb.stop()  # which also resets global variables


@pytest.fixture
def exporter(source, server, run, tmp_path):
    """A function that starts `all` with the source and a slow log."""

    def start(interval=0, credential="p", timeout=3600):
        (tmp_path / "slow.log").write_bytes(LOGS[0].read_bytes())
        (tmp_path / "password").write_text(credential)
        where = {
            "revocations": f'port = {server.port}\npassword-file = "password"',
            "proxysql": f'port = {server.port}\npassword-file = "password"\n'
            'user = "reader"',
            "mysql": f'port = {server.port}\npassword-file = "password"',
            "memcached": f'address = "127.0.0.1:{server.port}"',
        }
        config = tmp_path / "exporter.toml"
        config.write_text(
            f"[{source}]\n{where[source]}\ninterval = {interval}\ntimeout = {timeout}\n"
            '[slow-log]\nfile = "slow.log"\n'
        )
        return run("all", f"--config={config}", cwd=tmp_path)

    return start


def sources_succeeded(exporter, source, **more):
    """Return whether the source and the slow log succeeded."""
    text = exporter.read(**more)
    return tuple(
        f'keylag_exporter_source_success{{source="{name}"}} 1.0\n' in text
        for name in (source, "slow-log")
    )


def wait_until_recovered(exporter, source):
    deadline = time.monotonic() + 60
    while sources_succeeded(exporter, source, headers=SHORT_SCRAPE_TIMEOUT) != (
        True,
        True,
    ):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return True


@pytest.mark.stack
def test_scrape_timeout_is_respected_while_a_server_is_frozen(source, server, exporter):
    """The source's timeout is an hour, so only the scrape timeout applies."""
    running = exporter()
    assert sources_succeeded(running, source) == (True, True)
    server.freeze()

    assert sources_succeeded(running, source, headers=SHORT_SCRAPE_TIMEOUT) == (
        True,
        True,
    )
    server.thaw()
    assert wait_until_recovered(running, source)


@pytest.mark.stack
def test_frozen_server_fails_its_source_after_the_timeout(source, server, exporter):
    running = exporter(timeout=3)
    assert sources_succeeded(running, source) == (True, True)
    server.freeze()

    assert sources_succeeded(running, source) == (False, True)
    server.thaw()
    assert wait_until_recovered(running, source)


@pytest.mark.stack
def test_source_recovers_after_its_server_restarts(source, server, exporter):
    running = exporter()
    assert sources_succeeded(running, source) == (True, True)
    server.stop()

    assert sources_succeeded(running, source) == (False, True)
    server.start()
    if source == "proxysql":
        server.execute(test_proxysql.USE_STATS_SCHEMA)
    assert wait_until_recovered(running, source)


@pytest.mark.stack
@pytest.mark.parametrize("source", ["revocations", "proxysql", "mysql"], indirect=True)
def test_source_recovers_after_its_account_is_accepted(source, server, exporter):
    user = "reader" if source == "proxysql" else "keylag"
    running = exporter(credential="new")
    up = f'keylag_exporter_source_up{{source="{source}"}}'

    assert sources_succeeded(running, source) == (False, True)
    assert running.value(up) == 0
    server.execute(f"ALTER USER {user}@'127.0.0.1' IDENTIFIED BY 'new'")
    assert wait_until_recovered(running, source)


@pytest.mark.stack
@pytest.mark.parametrize("source", ["revocations", "proxysql", "mysql"], indirect=True)
def test_scrapes_within_the_interval_send_no_statement(source, server, exporter):
    running = exporter(interval=3600)
    assert sources_succeeded(running, source) == (True, True)
    with server.connect() as connection, connection.cursor() as cursor:

        def status(*names):
            cursor.execute("SHOW GLOBAL STATUS WHERE Variable_name IN %s", [names])
            return [int(value) for _, value in cursor.fetchall()]

        # The end of the read's connection is a question, too.
        wait_until(lambda: status("Threads_connected") == [1])
        connections, questions = status("Connections", "Questions")
        for _ in range(5):
            sources_succeeded(running, source)

        assert status("Connections", "Questions") == [connections, questions + 1]
