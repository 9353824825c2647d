"""A fake Keystone for tests of load plans and readers.

It issues, validates and revokes tokens, sends a fixed Server-Timing header, and counts
requests.
"""

import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TIMING = (
    "total;dur=10.0000, sql;dur=2.0000, cache;dur=1.0000, revocation;dur=0.5000,"
    " password_hash;dur=5.0000, token_crypto;dur=0.2500, orm;dur=0.7500,"
    " other;dur=0.5000, sql_statements;desc=6, cache_calls;desc=17,"
    " sql.authenticate;dur=1.5000, sql_pool.roles;dur=0.5000,"
    " cache.validate;dur=1.0000,"
    " revocation_match.check_revocation;dur=0.5000,"
    " password_hash.authenticate;dur=5.0000, token_crypto.issue;dur=0.2500,"
    " orm.roles;dur=0.7500, other.other;dur=0.5000"
)
TOKEN = b'{"token": {"methods": ["password"], "expires_at": "2999-01-01T00:00:00Z"}}'


class FakeKeystone(ThreadingHTTPServer):
    """Listens on a free port of 127.0.0.1; `requests` counts (method, status)."""

    daemon_threads = True

    def __init__(self, *, timing: str | None = TIMING) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.timing = timing
        self.lock = threading.Lock()
        self.numbers = itertools.count(1)
        self.live: set[str] = set()
        self.requests: Counter[tuple[str, int]] = Counter()
        self.users: Counter[str] = Counter()
        self.failure = 0
        """The status of each log-in, if it is set."""
        self.log_in_seconds: dict[str, float] = {}
        """How long a log-in of a user waits for its answer."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet per response avoids delayed ACKs
    server: FakeKeystone

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def respond(self, code: int, token: str | None = None) -> None:
        body = b"" if code == 204 else TOKEN
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        if token:
            self.send_header("X-Subject-Token", token)
        if self.server.timing:
            self.send_header("Server-Timing", self.server.timing)
        self.end_headers()
        self.wfile.write(body)
        with self.server.lock:
            self.server.requests[self.command, code] += 1

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        user = json.loads(self.rfile.read(length))["auth"]["identity"]["password"]
        name, password = user["user"]["name"], user["user"]["password"]
        if self.server.failure:
            return self.respond(self.server.failure)
        if password != password_of(name):
            return self.respond(401)
        with self.server.lock:
            self.server.users[name] += 1
            token = f"canary-token-{next(self.server.numbers)}"
            self.server.live.add(token)
        time.sleep(self.server.log_in_seconds.get(name, 0))
        return self.respond(201, token)

    def do_GET(self) -> None:
        self.respond(self._checked(200))

    def do_DELETE(self) -> None:
        code = self._checked(204)
        self.server.live.discard(self.headers["X-Subject-Token"])
        self.respond(code)

    def _checked(self, good: int) -> int:
        if self.headers["X-Auth-Token"] not in self.server.live:
            return 401
        return good if self.headers["X-Subject-Token"] in self.server.live else 404


def password_of(name: str) -> str:
    """Return a password that needs quoting in CSV and in JSON."""
    return f'canary-password "{name}", \\ü'


@contextmanager
def running(*, timing: str | None = TIMING) -> Iterator[FakeKeystone]:
    """Serve until the `with` body ends."""
    with FakeKeystone(timing=timing) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
