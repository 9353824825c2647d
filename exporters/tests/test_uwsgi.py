"""uWSGI's statistics, as its stats server sends them."""

import json
import socket
import threading

import pytest

from keylag_exporters.model import UnreachableError
from keylag_exporters.uwsgi import SOURCE_TYPE

# Statistics of uWSGI 2.0.30 with two workers, reduced to the exported parts.
WORKER = {
    "requests": 0,
    "exceptions": 0,
    "harakiri_count": 0,
    "rss": 0,
    "vsz": 0,
    "running_time": 0,
    "respawn_count": 1,
    "tx": 0,
}
BUSY = {"requests": 7, "running_time": 2_500_000, "rss": 9928704, "status": "busy"}
STATISTICS = {
    "listen_queue_errors": 3,
    "sockets": [{"name": "127.0.0.1:5000", "queue": 4, "max_queue": 100}],
    "workers": [{**WORKER, "id": 1, "status": "sig0"}, {**WORKER, **BUSY, "id": 2}],
}


@pytest.fixture(params=["tcp", "unix"])
def stats_server(request, tmp_path):
    """A function that serves some bytes to one client and returns the address."""
    listening = []

    def serve(answer):
        if request.param == "tcp":
            server = socket.create_server(("127.0.0.1", 0))
            address = "{}:{}".format(*server.getsockname())
        else:
            address = str(tmp_path / "stats.sock")
            server = socket.socket(socket.AF_UNIX)
            server.bind(address)
            server.listen()
        listening.append(server)

        def send():
            connection, _ = server.accept()
            with connection:
                connection.sendall(answer)

        threading.Thread(target=send, daemon=True).start()
        return address

    yield serve
    for server in listening:
        server.close()


def test_workers_queue_and_memory_are_exported(stats_server, settings, samples):
    """Times are in seconds; a worker that handles a signal is busy."""
    address = stats_server(json.dumps(STATISTICS).encode())
    found = samples(
        SOURCE_TYPE.create(settings(SOURCE_TYPE, {"address": address})).collect()
    )

    def value(name, **labels):
        return found[f"keylag_uwsgi_{name}", tuple(labels.items())]

    assert value("worker_requests_total", worker="2") == 7
    assert value("worker_busy_seconds_total", worker="2") == 2.5
    assert value("worker_resident_bytes", worker="2") == 9928704
    assert value("workers", state="busy") == 2
    assert value("workers", state="idle") == 0
    assert value("socket_queue", socket="127.0.0.1:5000") == 4
    assert value("socket_queue_limit", socket="127.0.0.1:5000") == 100
    assert value("listen_queue_errors_total") == 3


def test_truncated_answer_raises_unreachable_error(stats_server, settings):
    """A server that dies while it sends exports no partial values."""
    address = stats_server(b'{"workers": [')
    source = SOURCE_TYPE.create(settings(SOURCE_TYPE, {"address": address}))

    with pytest.raises(UnreachableError, match="cannot read statistics"):
        source.collect()


def test_endless_answer_ends(stats_server, settings, monkeypatch):
    monkeypatch.setattr("keylag_exporters.uwsgi.MAX_BYTES", 100)
    address = stats_server(json.dumps(STATISTICS).encode())
    source = SOURCE_TYPE.create(settings(SOURCE_TYPE, {"address": address}))

    with pytest.raises(UnreachableError, match="too long"):
        source.collect()


def test_missing_server_is_named_in_the_error(settings, tmp_path):
    source = SOURCE_TYPE.create(
        settings(SOURCE_TYPE, {"address": str(tmp_path / "nobody")})
    )

    with pytest.raises(UnreachableError, match="nobody"):
        source.collect()


def test_silent_server_times_out(settings):
    """The kernel accepts connections for a frozen uWSGI."""
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        address = "{}:{}".format(*frozen.getsockname())
        source = SOURCE_TYPE.create(
            settings(SOURCE_TYPE, {"address": address, "timeout": 0.1})
        )

        with pytest.raises(UnreachableError, match="timed out"):
            source.collect()
