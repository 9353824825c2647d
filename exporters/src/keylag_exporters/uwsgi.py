"""The uwsgi source: which workers are busy, and who waits for one.

uWSGI's stats server sends one JSON document to whoever connects, and hangs up.
"""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

from keylag_exporters.families import Families
from keylag_exporters.model import Declared, Kind, Option, UnreachableError
from keylag_exporters.settings import address

if TYPE_CHECKING:
    from collections.abc import Mapping

MICRO = 1e-6
CHUNK = 1 << 16
_WORKER = ("worker",)

# (statistic of a worker, family, factor, what it is); `_total` makes a counter
WORKER = (
    ("requests", "worker_requests_total", 1.0, "Requests answered, by worker."),
    (
        "running_time",
        "worker_busy_seconds_total",
        MICRO,
        "Time in requests.",
    ),
    ("exceptions", "worker_exceptions_total", 1.0, "Uncaught exceptions, by worker."),
    ("harakiri_count", "worker_harakiri_total", 1.0, "Times killed in a request."),
    ("respawn_count", "worker_starts_total", 1.0, "Times started, by worker."),
    ("tx", "worker_sent_bytes_total", 1.0, "Bytes sent, by worker."),
    ("rss", "worker_resident_bytes", 1.0, "Memory in use (option memory-report)."),
    ("vsz", "worker_virtual_bytes", 1.0, "Address space (option memory-report)."),
)
# (statistic of a socket, family, what it is)
SOCKET = (
    ("queue", "socket_queue", "Connections that no worker has taken yet, by socket."),
    ("max_queue", "socket_queue_limit", "Connections that may wait, by socket."),
)
STATES = ("idle", "busy", "pause", "cheap")

METRICS = (
    *(
        Declared(
            f"keylag_uwsgi_{name}",
            "counter" if name.endswith("_total") else "gauge",
            text,
            _WORKER,
        )
        for _, name, _, text in WORKER
    ),
    *(
        Declared(f"keylag_uwsgi_{name}", "gauge", text, ("socket",))
        for _, name, text in SOCKET
    ),
    Declared("keylag_uwsgi_workers", "gauge", "Workers by what they do.", ("state",)),
    Declared(
        "keylag_uwsgi_listen_queue_errors_total",
        "counter",
        "Times that a connection found the queue full.",
    ),
)


class Uwsgi:
    """Asks one stats server on every scrape."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._address = settings["address"]
        self._timeout = settings["timeout"]

    def collect(self) -> Families:
        """Return the families of this moment; raises UnreachableError."""
        families = Families(METRICS)
        statistics = _ask(self._address, self._timeout)
        for worker in statistics["workers"]:
            for key, name, factor, _ in WORKER:
                value = worker[key] * factor
                families.add(f"keylag_uwsgi_{name}", value, str(worker["id"]))
        for one in statistics["sockets"]:
            for key, name, _ in SOCKET:
                families.add(f"keylag_uwsgi_{name}", one[key], one["name"])
        found = [_state(worker["status"]) for worker in statistics["workers"]]
        for state in STATES:
            families.add("keylag_uwsgi_workers", found.count(state), state)
        errors = statistics["listen_queue_errors"]
        families.add("keylag_uwsgi_listen_queue_errors_total", errors)
        return families

    def close(self) -> None:
        """Do nothing: no connection outlives a scrape."""


def _state(status: str) -> str:
    """Return one of STATES; a worker that handles signal 7 says `sig7`."""
    return "busy" if status.startswith("sig") else status


def _ask(address: str, timeout: float) -> dict[str, Any]:
    """Return what the stats server sends, over TCP or a Unix socket."""
    try:
        with _connected(address, timeout) as connection:
            sent = b"".join(iter(lambda: connection.recv(CHUNK), b""))
        found: dict[str, Any] = json.loads(sent)
    except (OSError, ValueError) as error:
        message = f"no statistics at {address}: {error}"
        raise UnreachableError(message) from error
    return found


def _connected(address: str, timeout: float) -> socket.socket:
    if "/" not in address:
        host, _, port = address.rpartition(":")
        return socket.create_connection((host or "127.0.0.1", int(port)), timeout)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    connection.connect(address)
    return connection


KIND = Kind(
    name="uwsgi",
    help="Read uWSGI's stats server: busy workers, waiting connections, memory.",
    options=(
        Option(
            "address",
            "HOST:PORT or path of the stats server (option stats of uWSGI).",
            address,
            "127.0.0.1:1717",
        ),
    ),
    metrics=METRICS,
    open=Uwsgi,
    port=9724,
)
