"""OTLP endpoints on 127.0.0.1: a healthy one, and all kinds of broken ones."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Callable

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

LOCAL = "127.0.0.1"
DURATION = "http.server.request.duration"
RUBBISH = b"\x00\xff\x00 this is not HTTP\r\n\r\n" * 100


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind((LOCAL, 0))
        return int(probe.getsockname()[1])


class Sink:
    """The exports that a healthy endpoint received: the last sum of each series.

    A process that starts anew starts its sums anew, so its start is part of
    what tells one series from another.
    """

    def __init__(self) -> None:
        self.url = ""
        self.counts: dict[tuple[Any, ...], int] = {}
        self.workers: defaultdict[str, set[int]] = defaultdict(set)
        """Instance to the starts of its processes."""

    def take(self, body: bytes) -> None:
        """Add the content of one export."""
        export = ExportMetricsServiceRequest.FromString(body)
        for resource in export.resource_metrics:
            instance = _text(resource.resource.attributes, "service.instance.id")
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name == DURATION:
                        self._add(instance, metric.histogram.data_points)

    def _add(self, instance: str, points: Any) -> None:
        for point in points:
            start = point.start_time_unix_nano
            attributes = sorted(str(each) for each in point.attributes)
            self.workers[instance].add(start)
            self.counts[(instance, start, *attributes)] = point.count

    @property
    def requests(self) -> int:
        """Number of requests that all workers counted."""
        return sum(self.counts.values())


def _text(attributes: Any, key: str) -> str:
    return next(each.value.string_value for each in attributes if each.key == key)


@contextmanager
def healthy(port: int = 0) -> Iterator[Sink]:
    """Receive exports and respond as a Collector does, on a free port or this one."""
    sink = Sink()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/metrics":
                sink.take(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer((LOCAL, port), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        sink.url = f"http://{LOCAL}:{server.server_port}"
        yield sink
        server.shutdown()


def _hang(connection: socket.socket, over: Event) -> None:
    with connection:
        over.wait()


def _drip(connection: socket.socket, over: Event) -> None:
    """Send an endless response, one byte at a time."""
    with connection, suppress(OSError):
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while not over.wait(0.1):
            connection.sendall(b"x")


def _talk_rubbish(connection: socket.socket, over: Event) -> None:
    del over
    with connection, suppress(OSError):
        connection.recv(65536)
        connection.sendall(RUBBISH)


def _be_overloaded(connection: socket.socket, over: Event) -> None:
    del over
    with connection, suppress(OSError):
        connection.recv(65536)
        connection.sendall(
            b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
            b"Content-Length: 0\r\nConnection: close\r\n\r\n"
        )


LISTENERS: dict[str, Callable[[socket.socket, Event], None]] = {
    "hanging": _hang,
    "slow": _drip,
    "answering rubbish": _talk_rubbish,
    "overloaded": _be_overloaded,
}
ADDRESSES: dict[str, Callable[[], str]] = {
    "absent": lambda: "http://absent.invalid:4318",
    "refusing": lambda: f"http://{LOCAL}:{free_port()}",
}
KINDS = (*ADDRESSES, *LISTENERS)


@contextmanager
def _listening(behave: Callable[[socket.socket, Event], None]) -> Iterator[str]:
    over = Event()

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                Thread(target=behave, args=(connection, over), daemon=True).start()

    with socket.create_server((LOCAL, 0), backlog=100) as server:
        Thread(target=accept, daemon=True).start()
        yield f"http://{LOCAL}:{server.getsockname()[1]}"
        over.set()


@contextmanager
def bad(kind: str) -> Iterator[str]:
    """Yield the address of an endpoint of that kind."""
    with ExitStack() as stack:
        listener = LISTENERS.get(kind)
        yield (
            stack.enter_context(_listening(listener))
            if listener
            else (ADDRESSES[kind]())
        )
