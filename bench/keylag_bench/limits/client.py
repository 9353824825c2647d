"""Sends the calls to one Keystone, one after the other, and measures each."""

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keylag import users_csv
from keylag.faults.probe import password_request
from keylag.launcher import StackError
from keylag.load_target import LoadTarget
from keylag.server_timing import parse_server_timing
from keylag_bench.limits.tables import (
    CALLS,
    FRAMEWORK,
    HASHES,
    OUTSIDE,
    Call,
    Seconds,
)

PATH = "/v3/auth/tokens"
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Request:
    """A request, and the status of its response."""

    method: str
    path: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True)
class Reply:
    """A response, and how long the client waited for it."""

    seconds: float
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Sample:
    """One call, or one run of a part."""

    seconds: Seconds
    counts: Mapping[str, float] = field(default_factory=dict)
    """SQL statements and cache calls of a call."""

    @property
    def total_seconds(self) -> float:
        """The time in all places."""
        return sum(self.seconds.values())


class Client:
    """A client of one Keystone."""

    def __init__(self, target: LoadTarget, query: str = "") -> None:
        self._target = target
        users = users_csv.read_rows(Path(target.properties["users_file"]))
        self._requests = {
            FRAMEWORK: Request("GET", "/v3", http.client.OK),
            **{
                name: self._call_request(call, users[HASHES[call.hash].user_row], query)
                for name, call in CALLS.items()
            },
        }

    def _call_request(self, call: Call, user: Mapping[str, str], query: str) -> Request:
        login = Request("POST", PATH + query, http.client.CREATED, body=log_in(user))
        if call.method == "POST":
            return login
        tokens = {
            "X-Auth-Token": self._token(log_in(self._administrator())),
            "X-Subject-Token": self._token(log_in(user)),
        }
        return Request("GET", PATH + query, http.client.OK, tokens)

    def _administrator(self) -> dict[str, str]:
        properties = self._target.properties
        return {
            "username": properties["service_username"],
            "password": self._target.secrets["service_password"],
            "user_domain": "Default",
            "project": properties["service_project"],
            "project_domain": "Default",
        }

    def _token(self, body: bytes) -> str:
        reply = self.send(Request("POST", PATH, http.client.CREATED, body=body))
        return reply.headers["X-Subject-Token"]

    def issue(self) -> tuple[str, Any]:
        """Return a token of the first user, and the body of its response."""
        reply = self.send(self._requests["POST"])
        return reply.headers["X-Subject-Token"], json.loads(reply.body)

    def measure(self, name: str) -> Sample:
        """Send the request of a call, or that of FRAMEWORK."""
        reply = self.send(self._requests[name])
        timing = parse_server_timing(reply.headers["Server-Timing"])
        outside = reply.seconds - timing.total_seconds
        return Sample({**timing.categories, OUTSIDE: outside}, timing.counts)

    def send(self, request: Request) -> Reply:
        """Send a request on a connection of its own; raises StackError."""
        properties = self._target.properties
        host, port = properties["host"], int(properties["port"])
        started = time.perf_counter()
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        try:
            headers = {"Content-Type": "application/json", **request.headers}
            connection.request(request.method, request.path, request.body, headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            message = f"{request.method} {request.path} failed: {error}"
            raise StackError(message) from error
        finally:
            connection.close()
        seconds = time.perf_counter() - started
        if response.status != request.status:
            message = (
                f"{request.method} {request.path}: status {response.status} instead of "
                f"{request.status}"
            )
            raise StackError(message)
        return Reply(seconds, dict(response.getheaders()), body)


def log_in(user: Mapping[str, str]) -> bytes:
    """Return the body of a log-in, scoped to the project of the user's row."""
    return json.dumps(password_request(user)).encode()
