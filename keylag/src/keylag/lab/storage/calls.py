"""Sends Keystone's calls that write little, much or nothing, and measures each."""

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import requests

from keylag.experiment.interval import Interval
from keylag.faults.probe import admin_row, password_request, read_users
from keylag.lab import intervals
from keylag.server_timing import BadServerTimingError, parse_server_timing
from keylag.stack_info import StackInfo

TIMEOUT_SECONDS: Final = 60.0
WARM_UP_ROUNDS: Final = 2
"""Each worker gets calls of its own, which fill its caches."""
HEADER: Final = "Server-Timing"


@dataclass(frozen=True)
class Calls:
    """The calls of a kind that were answered as they should be."""

    count: int
    failed: int
    median_seconds: Interval
    """At the client, with its interval at 95 %; too few calls have none."""
    sql_seconds: float
    """Mean time in SQL, by Keystone's own breakdown."""
    statements: float
    """Mean number of SQL statements."""

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON, which has null for what is unknown."""
        return {
            "count": self.count,
            "failed": self.failed,
            "median_seconds": intervals.as_json(self.median_seconds),
            "sql_seconds": self.sql_seconds,
            "statements": self.statements,
        }


@dataclass
class _Samples:
    seconds: list[float] = field(default_factory=list)
    sql_seconds: list[float] = field(default_factory=list)
    statements: list[int] = field(default_factory=list)
    failed: int = 0

    def add(self, seconds: float, server_timing: str) -> None:
        self.seconds.append(seconds)
        with suppress(BadServerTimingError):
            timing = parse_server_timing(server_timing)
            self.sql_seconds.append(timing.categories.get("sql", 0.0))
            self.statements.append(timing.counts.get("sql_statements", 0))

    def summary(self) -> Calls:
        return Calls(
            len(self.seconds),
            self.failed,
            intervals.median(self.seconds),
            fmean(self.sql_seconds) if self.sql_seconds else 0.0,
            fmean(self.statements) if self.statements else 0.0,
        )


def measure(stack: Path, seconds: float) -> Mapping[str, Calls]:
    """Send all kinds of calls in turn to a stack for some seconds; return them by kind.

    Raises StackDownError, or requests.RequestException if Keystone does not answer the
    first call.
    """
    info = StackInfo(stack)
    info.require_keystone("run `keylag lab storage up`")
    return Client(info).measure(seconds)


@dataclass(frozen=True)
class _Call:
    method: str
    path: str
    code: int
    """Of the expected answer."""
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Client:
    """Sends one call after the other to the Keystone of a stack.

    `KINDS` has its calls in the order in which they need each other.
    """

    def __init__(self, stack: StackInfo) -> None:
        self._api = f"{stack.url('keystone')}/v3"
        self._user, self._other_user = read_users(stack)[:2]
        self._admin = password_request(admin_row(stack))
        self._headers: dict[str, str] = {}
        self._samples: dict[str, _Samples] = {}
        self._subject = ""
        self._created = ""

    def measure(self, seconds: float) -> Mapping[str, Calls]:
        """Send all kinds of calls in turn for some seconds; return them by kind."""
        self._headers = {"X-Auth-Token": self._log_in_as_admin()}
        for _ in range(WARM_UP_ROUNDS):
            self._send_round()
        self._samples.clear()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self._send_round()
        return {kind: one.summary() for kind, one in self._samples.items()}

    def _log_in_as_admin(self) -> str:
        answer = requests.post(
            f"{self._api}/auth/tokens", json=self._admin, timeout=TIMEOUT_SECONDS
        )
        answer.raise_for_status()
        return answer.headers["X-Subject-Token"]

    def _send_round(self) -> None:
        for kind, call in KINDS.items():
            call(self, kind)

    def issue(self, kind: str) -> None:
        """Log in with a password."""
        body = password_request(self._user)
        answer = self._send(kind, _Call("POST", "/auth/tokens", 201, body))
        self._subject = answer.headers["X-Subject-Token"] if answer else ""

    def validate(self, kind: str) -> None:
        """Validate the token of the last log-in."""
        self._on_subject(kind, "GET", 200)

    def revoke(self, kind: str) -> None:
        """Revoke the token of the last log-in, which writes a revocation event."""
        self._on_subject(kind, "DELETE", 204)

    def _on_subject(self, kind: str, method: str, code: int) -> None:
        if self._subject:
            headers = {"X-Subject-Token": self._subject}
            self._send(kind, _Call(method, "/auth/tokens", code, headers=headers))

    def create_user(self, kind: str) -> None:
        """Create a user."""
        name = f"keylag-{secrets.token_hex(8)}"
        body = {"user": {"name": name, "password": secrets.token_hex(8)}}
        answer = self._send(kind, _Call("POST", "/users", 201, body))
        self._created = answer.json()["user"]["id"] if answer else ""

    def delete_user(self, kind: str) -> None:
        """Delete the last user that was created."""
        if self._created:
            self._send(kind, _Call("DELETE", f"/users/{self._created}", 204))

    def fail_to_log_in(self, kind: str) -> None:
        """Log in with a wrong password, which Keystone counts in the database."""
        body = password_request(self._other_user, "not the password")
        self._send(kind, _Call("POST", "/auth/tokens", 401, body))

    def _send(self, kind: str, call: _Call) -> requests.Response | None:
        """Send a call, and keep its times; return None unless it ends as expected."""
        samples = self._samples.setdefault(kind, _Samples())
        began = time.perf_counter()
        try:
            answer = requests.request(
                call.method,
                self._api + call.path,
                json=call.body,
                headers={**self._headers, **call.headers},
                timeout=TIMEOUT_SECONDS,
            )
        except requests.RequestException:
            samples.failed += 1
            return None
        elapsed = time.perf_counter() - began
        if answer.status_code != call.code:
            samples.failed += 1
            return None
        samples.add(elapsed, answer.headers.get(HEADER, ""))
        return answer


KINDS: Final[Mapping[str, Callable[[Client, str], None]]] = {
    "POST token": Client.issue,
    "GET token": Client.validate,
    "POST token, wrong password": Client.fail_to_log_in,
    "POST user": Client.create_user,
    "DELETE user": Client.delete_user,
    "DELETE token": Client.revoke,
}
"""By their names in tables."""
