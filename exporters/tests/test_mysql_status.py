"""A real MariaDB, servers of other protocols, and Galera's recorded status."""

import socket
import threading
import time
from contextlib import suppress

import pytest
import test_revocations
from exporter_helpers import wait_until

from keylag_exporters.families import Families
from keylag_exporters.model import UnreachableError
from keylag_exporters.mysql_status import (
    METRICS,
    SOURCE_TYPE,
    _add_latency,
    _parse_rows,
)

# Of MariaDB 10.11 with Galera 26.4.23; mysqld_exporter 0.14.0 has these values, too.
GALERA = {
    "wsrep_cluster_size": ("1", 1),
    "wsrep_cluster_status": ("Primary", 1),
    "wsrep_local_state": ("4", 4),
    "wsrep_ready": ("ON", 1),
    "wsrep_connected": ("ON", 1),
    "wsrep_flow_control_paused": ("0", 0),
    "wsrep_flow_control_paused_ns": ("0", 0),
    "wsrep_flow_control_sent": ("2", 2),
    "wsrep_flow_control_recv": ("5", 5),
    "wsrep_causal_reads": ("3", 3),
    "wsrep_local_recv_queue": ("0", 0),
    "wsrep_local_send_queue": ("0", 0),
    "wsrep_last_committed": ("1234", 1234),
    "wsrep_replicated_bytes": ("98765", 98765),
    "wsrep_received_bytes": ("4321", 4321),
    "wsrep_cert_deps_distance": ("1", 1),
    "wsrep_local_cert_failures": ("0", 0),
    "wsrep_local_bf_aborts": ("0", 0),
}
ABSENT = {"innodb_os_log_fsyncs"}
"""Counters that MariaDB 10.11 does not have."""
CACHED_SECONDS = 0.2
"""InnoDB reads information_schema.innodb_trx from a cache that lives for 0.1 s."""


@pytest.fixture
def create_source(settings, monkeypatch):
    monkeypatch.setenv("KEYLAG_MYSQL_PASSWORD", "p")

    def create(port, **more):
        return SOURCE_TYPE.create(
            settings(SOURCE_TYPE, {"port": port, "timeout": 30, **more})
        )

    return create


def status(found, name):
    return found[f"mysql_global_status_{name}", ()]


def transactions(found, name, state):
    return found[f"mysql_info_schema_innodb_trx_{name}", (("state", state),)]


@pytest.mark.stack
def test_account_without_privileges_reads_status_and_variables(
    mariadb, create_source, samples
):
    test_revocations.create(mariadb)
    found = samples(create_source(mariadb.port).collect())
    expected = {
        one.name
        for one in METRICS
        if not one.labels
        and "global_status_wsrep" not in one.name
        and "galera" not in one.name
        and one.name.removeprefix("mysql_global_status_") not in ABSENT
    }

    assert expected - {name for name, _ in found} == set()
    assert found["mysql_up", ()] == 1
    assert found["mysql_global_variables_skip_name_resolve", ()] == 1
    assert found["mysql_global_variables_innodb_flush_log_at_trx_commit", ()] == 0
    assert status(found, "threads_connected") >= 1
    assert status(found, "innodb_buffer_pool_read_requests") > 0
    assert [name for name, _ in found if "innodb_trx" in name] == []


@pytest.mark.stack
def test_transaction_that_holds_a_row_is_seen_with_its_age(
    mariadb, create_source, samples
):
    test_revocations.create(mariadb)
    mariadb.execute(
        "GRANT PROCESS ON *.* TO keylag@'127.0.0.1'",
        "CREATE TABLE keystone.t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO keystone.t VALUES (1, 1)",
    )
    source = create_source(mariadb.port)
    idle = samples(source.collect())
    update = "UPDATE keystone.t SET n = n + 1"
    with mariadb.connect() as holder, holder.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(update)

        def row_lock_waits():
            name = "innodb_row_lock_current_waits"
            cursor.execute(f"SHOW GLOBAL STATUS LIKE '{name}'")
            return int(cursor.fetchone()[1])

        waiting = threading.Thread(target=mariadb.execute, args=(update,))
        waiting.start()
        wait_until(lambda: row_lock_waits() == 1)
        time.sleep(1.5)  # ages have whole seconds
        found = samples(source.collect())
        cursor.execute("COMMIT")
    waiting.join()
    time.sleep(CACHED_SECONDS)
    after = samples(source.collect())

    assert transactions(idle, "transactions", "RUNNING") == 0
    assert transactions(idle, "oldest_transaction_seconds", "RUNNING") == 0
    assert transactions(found, "transactions", "RUNNING") == 1
    assert transactions(found, "transactions", "LOCK WAIT") == 1
    assert transactions(found, "oldest_transaction_seconds", "RUNNING") >= 1
    assert status(found, "innodb_row_lock_current_waits") == 1
    waits = status(found, "innodb_row_lock_waits") - status(
        idle, "innodb_row_lock_waits"
    )
    assert waits == 1
    lock_milliseconds = status(after, "innodb_row_lock_time") - status(
        idle, "innodb_row_lock_time"
    )
    assert lock_milliseconds >= 1000
    assert transactions(after, "transactions", "LOCK WAIT") == 0


def test_galera_status_has_the_values_of_mysqld_exporter():
    rows = tuple((name, text) for name, (text, _) in GALERA.items())
    text = ("wsrep_local_state_comment", "Synced")

    assert dict(_parse_rows((*rows, text))) == {
        name: value for name, (_, value) in GALERA.items()
    }
    assert {f"mysql_global_status_{name}" for name in GALERA} <= {
        one.name for one in METRICS
    }


@pytest.mark.parametrize(
    ("text", "latencies"),
    [
        ("0.0501/0.0512/0.0534/0.0009/17", [0.0501, 0.0512, 0.0534, 0.0009, 17]),
        ("0/0/0/0/0", [0, 0, 0, 0, 0]),
        ("", []),
    ],
)
def test_latency_between_nodes_has_the_names_of_mysqld_exporter(
    text, latencies, samples
):
    class Cursor:
        def execute(self, statement, values):
            assert (statement % values).endswith("LIKE wsrep_evs_repl_latency")

        def fetchall(self):
            return (("wsrep_evs_repl_latency", text),)

    families = Families(METRICS)
    _add_latency(families, Cursor())

    names = ("min_seconds", "avg_seconds", "max_seconds", "stdev", "sample_size")
    assert samples(families) == {
        (f"mysql_galera_evs_repl_latency_{name}", ()): value
        for name, value in zip(names, latencies, strict=False)
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("OFF", 0), ("No", 0), ("Yes", 1), ("1.5e3", 1500)),
        *(("Primary", 1), ("non-Primary", 0), ("Disconnected", 0)),
    ],
)
def test_words_and_numbers_become_values(text, value):
    assert dict(_parse_rows((("Name", text),))) == {"name": value}


def test_missing_server_exports_mysql_up_0(create_source, samples):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        source = create_source(unused.getsockname()[1])
        with pytest.raises(UnreachableError, match="refused") as caught:
            source.collect()

    assert samples(caught.value.families) == {("mysql_up", ()): 0}


@pytest.fixture
def serve():
    """A function that sends some bytes to one client and returns the port."""
    listening = []

    def start(greeting):
        server = socket.create_server(("127.0.0.1", 0))
        listening.append(server)

        def send():
            connection, _ = server.accept()
            with suppress(ConnectionResetError), connection:
                connection.sendall(greeting)
                connection.recv(100)

        threading.Thread(target=send, daemon=True).start()
        return server.getsockname()[1]

    yield start
    for server in listening:
        server.close()


@pytest.mark.parametrize(
    "greeting",
    [
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n" + bytes(100),
        b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(1 << 16),
        b"\x05\0\0\0\x0a10.1",  # a greeting that ends too early
        b"\x08\0\0\0\x0a\xff\xfe.\0\xff\xff\xff",
    ],
)
def test_server_of_another_protocol_is_unreachable(
    serve, create_source, samples, greeting
):
    port = serve(greeting)
    with pytest.raises(UnreachableError, match="no MySQL server") as caught:
        create_source(port).collect()

    assert f"127.0.0.1:{port}" in str(caught.value)
    assert samples(caught.value.families) == {("mysql_up", ()): 0}


def test_silent_server_times_out(create_source):
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        source = create_source(frozen.getsockname()[1], timeout=0.2)
        with pytest.raises(UnreachableError, match="timed out"):
            source.collect()
