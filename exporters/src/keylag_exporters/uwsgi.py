"""The uwsgi source: busy workers, waiting connections and memory.

uWSGI's stats server sends one JSON document to each client and disconnects.
"""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING, Any

from keylag_exporters.families import Families
from keylag_exporters.metric import Metric
from keylag_exporters.model import Option, SourceType, UnreachableError
from keylag_exporters.settings import parse_address, split_address

if TYPE_CHECKING:
    from collections.abc import Mapping

MICROSECOND = 1e-6
RECEIVE_BYTES = 1 << 16
MAX_BYTES = 1 << 24
"""The longest response: some hundred workers send a hundred times less."""
_WORKER_LABELS = ("worker",)

# (statistic of a worker, metric, factor, help); `_total` makes it a counter
WORKER_METRICS = (
    ("requests", "worker_requests_total", 1.0, "Requests answered, by worker."),
    (
        "running_time",
        "worker_busy_seconds_total",
        MICROSECOND,
        "Time in requests, by worker.",
    ),
    ("exceptions", "worker_exceptions_total", 1.0, "Uncaught exceptions, by worker."),
    ("harakiri_count", "worker_harakiri_total", 1.0, "Kills by harakiri, by worker."),
    ("respawn_count", "worker_starts_total", 1.0, "Starts, by worker."),
    ("tx", "worker_sent_bytes_total", 1.0, "Bytes sent, by worker."),
    ("rss", "worker_resident_bytes", 1.0, "Resident memory (option memory-report)."),
    ("vsz", "worker_virtual_bytes", 1.0, "Address space (option memory-report)."),
)
# (statistic of a socket, metric, help)
SOCKET_METRICS = (
    ("queue", "socket_queue", "Connections that wait for a worker, by socket."),
    ("max_queue", "socket_queue_limit", "Maximum of waiting connections, by socket."),
)
STATES = ("idle", "busy", "pause", "cheap")

METRICS = (
    *(
        Metric(
            f"keylag_uwsgi_{name}",
            "counter" if name.endswith("_total") else "gauge",
            text,
            _WORKER_LABELS,
        )
        for _, name, _, text in WORKER_METRICS
    ),
    *(
        Metric(f"keylag_uwsgi_{name}", "gauge", text, ("socket",))
        for _, name, text in SOCKET_METRICS
    ),
    Metric("keylag_uwsgi_workers", "gauge", "Workers by state.", ("state",)),
    Metric(
        "keylag_uwsgi_listen_queue_errors_total",
        "counter",
        "Connections that found the listen queue full.",
    ),
)


class UwsgiSource:
    """Reads one stats server."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._address = settings["address"]
        self._timeout = settings["timeout"]

    def collect(self) -> Families:
        """Return all families; raises UnreachableError."""
        families = Families(METRICS)
        statistics = _fetch(self._address, self._timeout)
        for worker in statistics["workers"]:
            for key, name, factor, _ in WORKER_METRICS:
                value = worker[key] * factor
                families.add(f"keylag_uwsgi_{name}", value, str(worker["id"]))
        for one in statistics["sockets"]:
            for key, name, _ in SOCKET_METRICS:
                families.add(f"keylag_uwsgi_{name}", one[key], one["name"])
        found = [_worker_state(worker["status"]) for worker in statistics["workers"]]
        for state in STATES:
            families.add("keylag_uwsgi_workers", found.count(state), state)
        errors = statistics["listen_queue_errors"]
        families.add("keylag_uwsgi_listen_queue_errors_total", errors)
        return families

    def close(self) -> None:
        """Do nothing: each read has its own connection."""


def _worker_state(status: str) -> str:
    """Return one of STATES; `sig7` is a worker that handles signal 7."""
    return "busy" if status.startswith("sig") else status


def _fetch(address: str, timeout: float) -> dict[str, Any]:
    try:
        with _connect(address, timeout) as connection:
            found: dict[str, Any] = json.loads(_receive(connection, timeout))
    except (OSError, ValueError) as error:
        message = f"cannot read statistics from {address}: {error}"
        raise UnreachableError(message) from error
    return found


def _receive(connection: socket.socket, timeout: float) -> bytes:
    """Return all that a server sends; raises OSError if that is too much or slow."""
    deadline = time.monotonic() + timeout
    sent = bytearray()
    while data := connection.recv(RECEIVE_BYTES):
        sent += data
        left = deadline - time.monotonic()
        if len(sent) > MAX_BYTES or left <= 0:
            message = "the response is too long, or takes too long"
            raise OSError(message)
        connection.settimeout(left)
    return bytes(sent)


def _connect(address: str, timeout: float) -> socket.socket:
    if "/" not in address:
        return socket.create_connection(split_address(address), timeout)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    connection.connect(address)
    return connection


SOURCE_TYPE = SourceType(
    name="uwsgi",
    help="Read busy workers, queues and memory from uWSGI.",
    options=(
        Option(
            "address",
            "HOST:PORT or path of the stats server (option stats of uWSGI).",
            parse_address,
            "127.0.0.1:1717",
        ),
    ),
    metrics=METRICS,
    create=UwsgiSource,
    port=9724,
)
