"""Serve `/metrics` until a signal says to stop."""

from __future__ import annotations

import logging
import signal
import socket
import ssl
import threading
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from socketserver import BaseServer

    from keylag_exporters.web_config import WebConfig

LOG = logging.getLogger("keylag_exporters")
REQUEST_SECONDS = 10
"""How long a client may take to send its request or to shake hands."""

_INDEX = b"keylag-exporter: see /metrics\n"


class _Handler(WSGIRequestHandler):
    """Requests with a time-out, and no line in the log for each of them."""

    timeout = REQUEST_SECONDS

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each request; with TLS the handshake happens there, too."""

    daemon_threads = True
    tls: ssl.SSLContext | None = None

    def server_bind(self) -> None:
        """Bind without asking the name service who we are: it may hang."""
        TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer one connection, after the handshake if there is one."""
        request.settimeout(REQUEST_SECONDS)
        if self.tls:
            request = self.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say in one line that a connection failed; clients may do as they like."""
        LOG.debug("%s from %s failed", request, client_address)


class _Server6(_Server):
    """The same on an IPv6 address."""

    address_family = socket.AF_INET6


def make_server(
    address: tuple[str, int], registry: CollectorRegistry, config: WebConfig
) -> BaseServer:
    """Return a server bound to an address, not yet serving."""
    server = (_Server6 if ":" in address[0] else _Server)(address, _Handler)
    server.tls = config.tls
    server.set_app(_guard(make_wsgi_app(registry), config))
    return server


def serve(server: BaseServer, closing: Iterable[Callable[[], None]] = ()) -> None:
    """Serve until SIGINT or SIGTERM; then close everything, within a second."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
    )
    thread.start()
    stop.wait()
    server.shutdown()
    server.server_close()
    for close in closing:
        close()


def _guard(app: Callable[..., Any], config: WebConfig) -> Callable[..., Any]:
    """Return an application that asks for credentials and has one page."""

    def guarded(environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        if not config.allows(environ.get("HTTP_AUTHORIZATION", "")):
            start("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="metrics"')])
            return [b"Unauthorized\n"]
        if environ.get("PATH_INFO") == "/metrics":
            return app(environ, start)
        start("200 OK", [("Content-Type", "text/plain")])
        return [_INDEX]

    return guarded
