"""An OTLP endpoint that accepts and discards everything, and counts requests."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from keylag.services.base import HOST


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # exporters keep their connection

    def do_POST(self) -> None:
        """Answer like a Collector that accepted everything."""
        size = int(self.headers.get("Content-Length", 0))
        self.rfile.read(size)
        if isinstance(self.server, OtlpSink):
            self.server.requests_by_path[self.path] += 1
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class OtlpSink(ThreadingHTTPServer):
    """Listens on a free port of 127.0.0.1."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Handler)
        self.requests_by_path: Counter[str] = Counter()
        """Export requests by path: /v1/traces, /v1/metrics."""

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self.server_port


@contextmanager
def open_otlp_sink() -> Iterator[OtlpSink]:
    """Return a sink that listens until the end of the context."""
    with OtlpSink() as sink:
        thread = Thread(target=sink.serve_forever, name="otlp-sink", daemon=True)
        thread.start()
        try:
            yield sink
        finally:
            sink.shutdown()
            thread.join()
