"""The client that measures Keystone's calls."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from keylag.launcher import StackError
from keylag.load_target import LoadTarget
from keylag_bench.limits.client import Client
from keylag_bench.limits.tables import HASHES, OUTSIDE

TIMING = ", ".join(
    [
        *("total;dur=0.0015", "sql;dur=0.001", "other;dur=0.0005"),
        *("sql.validate;dur=0.001", "sql_statements;desc=4"),
    ]
)


class Keystone(BaseHTTPRequestHandler):
    """Issues one token to everybody, and records the requests."""

    requests: list[tuple[str, str, dict[str, str], Any]]
    failing: str

    def do_GET(self) -> None:
        self._reply(200)

    def do_POST(self) -> None:
        self._reply(201)

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _reply(self, status: int) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or "null")
        self.requests.append((self.command, self.path, dict(self.headers), body))
        self.send_response(500 if self.path == self.failing else status)
        self.send_header("Server-Timing", TIMING)
        self.send_header("X-Subject-Token", f"token {len(self.requests)}")
        self.end_headers()
        self.wfile.write(b'{"token": {}}')


@pytest.fixture
def keystone() -> Iterator[ThreadingHTTPServer]:
    """A fake Keystone."""
    Keystone.requests, Keystone.failing = [], ""
    with ThreadingHTTPServer(("127.0.0.1", 0), Keystone) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def target(keystone: ThreadingHTTPServer, tmp_path: Path) -> LoadTarget:
    """The fake Keystone with its users."""
    users = tmp_path / "users.csv"
    rows = [f"user-{n},secret-{n},acme,project,acme" for n in range(31)]
    header = "username,password,user_domain,project,project_domain"
    users.write_text("\n".join([header, *rows, ""]))
    return LoadTarget(
        {
            "host": "127.0.0.1",
            "port": str(keystone.server_address[1]),
            "users_file": str(users),
            "service_username": "admin",
            "service_project": "admin",
        },
        {"service_password": "admin's"},
    )


def test_sample_has_the_breakdown_and_the_time_outside(target: LoadTarget) -> None:
    sample = Client(target).measure("GET")

    assert sample.seconds["sql"] == pytest.approx(1e-6)
    assert sample.seconds[OUTSIDE] > 0
    assert sample.total_seconds > 1.5e-6
    assert sample.counts == {"sql_statements": 4}


def test_validation_has_the_token_of_the_administrator_and_of_a_user(
    target: LoadTarget,
) -> None:
    client = Client(target, "?nocatalog")
    client.measure("GET")

    (_, _, _, admin), (_, _, _, user), (method, path, headers, _) = Keystone.requests
    assert admin["auth"]["identity"]["password"]["user"]["name"] == "admin"
    assert user["auth"]["identity"]["password"]["user"]["name"] == "user-0"
    assert (method, path) == ("GET", "/v3/auth/tokens?nocatalog")
    assert headers["X-Auth-Token"] == "token 1"
    assert headers["X-Subject-Token"] == "token 2"


def test_each_hash_has_a_user(target: LoadTarget) -> None:
    client = Client(target)
    for call in ("POST", "POST-least"):
        client.measure(call)

    names = [
        body["auth"]["identity"]["password"]["user"]["name"]
        for _, _, _, body in Keystone.requests[-2:]
    ]
    assert names == ["user-0", f"user-{HASHES['least'].user_row}"]


def test_token_is_issued_with_the_body_of_its_response(target: LoadTarget) -> None:
    assert Client(target).issue() == ("token 3", {"token": {}})


def test_unexpected_status_is_an_error(target: LoadTarget) -> None:
    client = Client(target)
    Keystone.failing = "/v3"

    with pytest.raises(StackError, match="GET /v3: status 500 instead of 200"):
        client.measure("framework")


def test_server_that_does_not_answer_is_an_error(
    target: LoadTarget, keystone: ThreadingHTTPServer
) -> None:
    client = Client(target)
    keystone.shutdown()
    keystone.server_close()

    with pytest.raises(StackError, match="POST /v3/auth/tokens failed: "):
        client.measure("POST")
