"""Serve `/metrics` until a signal says to stop."""

from __future__ import annotations

import gzip
import logging
import math
import signal
import socket
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
REQUEST_SECONDS = 10
"""How long a client may take to send its request or to shake hands."""
SCRAPE_TIMEOUT = "HTTP_X_PROMETHEUS_SCRAPE_TIMEOUT_SECONDS"
"""The header that says after how long Prometheus gives up."""
SHARE_OF_TIMEOUT = 0.8
"""What sources get of it; the rest is for writing and sending the answer."""
GZIP_LEVEL = 1
"""Level 9 takes five times as long for a text a fifth smaller."""

_INDEX = b"keylag-exporter: see /metrics\n"


class _Handler(WSGIRequestHandler):
    """Requests with a time-out, and no line in the log for each of them."""

    timeout = REQUEST_SECONDS

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Server(ThreadingMixIn, WSGIServer):
    """A thread for each request; with TLS the handshake happens there, too."""

    daemon_threads = True
    config: WebConfig

    def server_bind(self) -> None:
        """Bind without asking the name service who we are: it may hang."""
        TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer one connection, after the handshake if there is one."""
        request.settimeout(REQUEST_SECONDS)
        if self.config.tls:
            request = self.config.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say in one line that a connection failed; clients may do as they like."""
        LOG.debug("%s from %s failed", request, client_address)


class _Server6(Server):
    """The same on an IPv6 address."""

    address_family = socket.AF_INET6


def make_server(address: tuple[str, int], config: WebConfig) -> Server:
    """Return a server bound to an address, not yet serving."""
    server = (_Server6 if ":" in address[0] else Server)(address, _Handler)
    server.config = config
    return server


def serve(
    server: Server,
    metrics: Callable[[float], bytes],
    closing: Iterable[Callable[[], None]] = (),
) -> None:
    """Serve until SIGTERM, or SIGINT, which raises KeyboardInterrupt.

    The sources are closed then, within a second.

    All are closed; what one of them raises comes after that.
    `metrics` returns the exposition, within so many seconds. The server's thread never
    wakes up without a request; it ends with the process.
    """
    server.set_app(_guard(metrics, server.config))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    # A shell starts what is in its background with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": None}, daemon=True
    )
    thread.start()
    with ExitStack() as closers:
        for close in closing:
            closers.callback(close)
        stop.wait()


def _guard(
    metrics: Callable[[float], bytes], config: WebConfig
) -> Callable[..., Iterable[bytes]]:
    """Return an application that asks for credentials and has one page."""

    def guarded(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if not config.allows(environ.get("HTTP_AUTHORIZATION", "")):
            start("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="metrics"')])
            return [b"Unauthorized\n"]
        if environ.get("PATH_INFO") != "/metrics":
            start("200 OK", [("Content-Type", "text/plain")])
            return [_INDEX]
        headers = [("Content-Type", CONTENT_TYPE)]
        body = metrics(_scrape_timeout(environ))
        if gzip_accepted(environ.get("HTTP_ACCEPT_ENCODING", "")):
            body = gzip.compress(body, GZIP_LEVEL)
            headers.append(("Content-Encoding", "gzip"))
        start("200 OK", headers)
        return [body]

    return guarded


def _scrape_timeout(environ: dict[str, Any]) -> float:
    """Return how long sources may take, so that Prometheus still gets an answer."""
    try:
        seconds = float(environ[SCRAPE_TIMEOUT])
    except (KeyError, ValueError):
        return math.inf
    return SHARE_OF_TIMEOUT * seconds if seconds > 0 else math.inf
