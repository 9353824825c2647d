"""Serves `/metrics` until SIGTERM or SIGINT."""

from __future__ import annotations

import gzip
import logging
import math
import signal
import socket
import sys
import threading
from contextlib import ExitStack
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client.exposition import gzip_accepted

from keylag_exporters.families import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from keylag_exporters.web_config import WebConfig

LOG = logging.getLogger("keylag_exporters")
CLIENT_TIMEOUT_SECONDS = 10
"""Timeout of a client's request and of its TLS handshake."""
SCRAPE_TIMEOUT_HEADER = "HTTP_X_PROMETHEUS_SCRAPE_TIMEOUT_SECONDS"
"""Header with the scrape timeout of Prometheus, in seconds."""
TIMEOUT_SHARE = 0.8
"""Share of it that sources get; the rest is for the response."""
GZIP_LEVEL = 1
"""Level 9 takes five times as long for a response that is a fifth smaller."""

_INDEX = b"keylag-exporter: see /metrics\n"


class _Handler(WSGIRequestHandler):
    """Handles requests with a timeout, without an access log, in one write."""

    timeout = CLIENT_TIMEOUT_SECONDS
    wbufsize = -1

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


class Server(ThreadingMixIn, WSGIServer):
    """Handles each request in its own thread, including the TLS handshake."""

    daemon_threads = True
    config: WebConfig

    def server_bind(self) -> None:
        """Bind without the reverse DNS look-up of HTTPServer, which may hang."""
        TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer one connection, after the TLS handshake if TLS is on."""
        request.settimeout(CLIENT_TIMEOUT_SECONDS)
        if self.config.tls:
            request = self.config.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a failed connection in a line: clients cause these errors."""
        del request
        LOG.info("a connection from %s failed: %r", client_address, sys.exception())


class _IPv6Server(Server):
    """A Server that listens on an IPv6 address."""

    address_family = socket.AF_INET6


def make_server(address: tuple[str, int], config: WebConfig) -> Server:
    """Return a server that is bound to an address and does not serve yet."""
    server = (_IPv6Server if ":" in address[0] else Server)(address, _Handler)
    server.config = config
    return server


def serve(
    server: Server,
    metrics: Callable[[float], bytes],
    closing: Iterable[Callable[[], None]] = (),
) -> None:
    """Serve until SIGTERM, or until SIGINT, which raises KeyboardInterrupt.

    `metrics` takes a timeout in seconds and returns the exposition. At the end all of
    `closing` are called, even if some raise; their exceptions propagate. The server's
    thread sleeps between requests and ends with the process.
    """
    server.set_app(_make_app(metrics, server.config))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    # Shells start background processes with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": None}, daemon=True
    )
    thread.start()
    with ExitStack() as closers:
        for close in closing:
            closers.callback(close)
        stop.wait()


def _make_app(
    metrics: Callable[[float], bytes], config: WebConfig
) -> Callable[..., Iterable[bytes]]:
    """Return the WSGI application: authorization, then `/metrics` or the index page."""

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if not config.is_authorized(environ.get("HTTP_AUTHORIZATION", "")):
            start("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="metrics"')])
            return [b"Unauthorized\n"]
        if environ.get("PATH_INFO") != "/metrics":
            start("200 OK", [("Content-Type", "text/plain")])
            return [_INDEX]
        headers = [("Content-Type", CONTENT_TYPE)]
        body = metrics(_source_timeout(environ))
        if gzip_accepted(environ.get("HTTP_ACCEPT_ENCODING", "")):
            body = gzip.compress(body, GZIP_LEVEL)
            headers.append(("Content-Encoding", "gzip"))
        start("200 OK", headers)
        return [body]

    return app


def _source_timeout(environ: dict[str, Any]) -> float:
    """Return the seconds that sources get, so that the response is in time."""
    try:
        seconds = float(environ[SCRAPE_TIMEOUT_HEADER])
    except (KeyError, ValueError):
        return math.inf
    return TIMEOUT_SHARE * seconds if seconds > 0 else math.inf
