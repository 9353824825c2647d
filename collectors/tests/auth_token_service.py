"""A service behind a real auth_token, and its Keystone over HTTP.

Both are in one process, each with a clock of its own, since Keystone answers in
another thread.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from signal import SIGCONT, SIGSTOP
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest
from backend_servers import free_port, program
from keystone_client import Breakdown, Keystone, environ_of, record_breakdowns
from keystone_site import PASSWORD

from keylag_otel.auth_token.recording import SERVICE_AGGREGATOR

_PATIENCE_SECONDS = 20

Response = tuple[int, dict[str, str], Breakdown]


@contextmanager
def over_http(application: Any) -> Iterator[str]:
    """Serve an application on a free port while the block runs; yield its URL."""
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v3"
    finally:
        server.shutdown()
        thread.join()


@contextmanager
def listed(keystone: Keystone) -> Iterator[str]:
    """Serve Keystone, and put its URL into its catalog; yield the URL."""
    with over_http(keystone.application) as url:
        endpoints = keystone.call("GET", "/v3/endpoints", None, keystone.admin)
        for endpoint in endpoints.json["endpoints"]:
            path = f"/v3/endpoints/{endpoint['id']}"
            change = {"endpoint": {"url": url}}
            keystone.call("PATCH", path, change, keystone.admin)
        yield url


class Service:
    """A service behind auth_token that keeps the breakdowns of its requests.

    `options` are those of [keystone_authtoken].  It is instrumented if its process is.
    """

    def __init__(self, url: str, **options: Any) -> None:
        from keystonemiddleware.auth_token import AuthProtocol

        self.application = AuthProtocol(_answer, {**authtoken(url), **options})
        self.breakdowns = record_breakdowns(SERVICE_AGGREGATOR)

    def call(self, token: str | None = None, **headers: str) -> Response:
        """Send a request as a WSGI server does; return the reply.

        As with a server, the status is 500 if auth_token raises.
        """
        if token is not None:
            headers["X-Auth-Token"] = token
        started: list[Any] = []
        environ = environ_of("GET", "/canary-path", None, headers)
        try:
            b"".join(self.application(environ, lambda *args: started.extend(args)))
        except Exception:  # noqa: BLE001 - as a WSGI server does
            return 500, {}, self.breakdowns[-1]
        return int(started[0][:3]), dict(started[1]), self.breakdowns[-1]


def _answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def authtoken(url: str) -> dict[str, Any]:
    """Return the options of a service that uses the Keystone at `url`."""
    return {
        "auth_type": "password",
        "auth_url": url,
        "username": "admin",
        "password": PASSWORD,
        "user_domain_id": "default",
        "project_name": "admin",
        "project_domain_id": "default",
        "interface": "public",
        "www_authenticate_uri": url,
        "http_request_max_retries": 0,
        # Options of its own: Keystone's are this process's.
        "oslo_config_project": "keylag-service",
    }


@dataclass(frozen=True)
class Memcached:
    """A memcached that can be made to hang."""

    port: int
    pid: int

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Suspend it: the kernel accepts connections, and nothing responds."""
        os.kill(self.pid, SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, SIGCONT)


@contextmanager
def memcached() -> Iterator[Memcached]:
    """Run a memcached while the block runs."""
    port = free_port()
    user = ["-u", "nobody"] if os.getuid() == 0 else []
    listen = ["-l", "127.0.0.1", "-U", "0", "-p", str(port)]
    with subprocess.Popen([program("memcached"), *listen, *user]) as process:
        try:
            yield Memcached(port, process.pid)
        finally:
            process.kill()


def until(true: Callable[[], bool], what: str) -> None:
    """Wait until a condition is true."""
    deadline = monotonic() + _PATIENCE_SECONDS
    while not true():
        if monotonic() > deadline:
            pytest.fail(f"never so: {what}")
        sleep(0.05)
