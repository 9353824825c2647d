"""A client that sends calls to Keystone at a rate."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import BoundedSemaphore
from typing import Any, Final

import requests

from keylag.faults.helpers.host import Host, ready
from keylag.faults.probe import admin_row, password_request, read_users
from keylag.stack_info import StackInfo

AT_A_TIME: Final = 32
"""Calls that are under way at most; a slower Keystone gets fewer calls."""
TIMEOUT_SECONDS: Final = 60.0
USER_AGENT: Final = "keylag-fault"


class _Client:
    """What the calls of a storm share: the address, the users, an own token."""

    def __init__(self, host: Host) -> None:
        stack = StackInfo(host.folder)
        self.api = f"{stack.url('keystone')}/v3"
        self._users = read_users(stack)
        self._admin = admin_row(stack)
        self._token = ""

    def row(self, number: int) -> Mapping[str, str]:
        """Return a user in turn."""
        return self._users[number % len(self._users)]

    def send(self, method: str, path: str, **more: Any) -> requests.Response:
        """Send a call."""
        headers = {"User-Agent": USER_AGENT, **more.pop("headers", {})}
        return requests.request(
            method,
            self.api + path,
            headers=headers,
            timeout=TIMEOUT_SECONDS,
            **more,
        )

    def issue(self, body: Mapping[str, Any]) -> str:
        """Issue a token; empty if that is rejected."""
        answer = self.send("POST", "/auth/tokens", json=body)
        return answer.headers.get("X-Subject-Token", "")

    def admin_token(self, *, fresh: bool = False) -> str:
        """Return the administrator's token."""
        if fresh or not self._token:
            self._token = self.issue(password_request(self._admin))
        return self._token


def _log_in(client: _Client, number: int) -> None:
    client.issue(password_request(client.row(number)))


def _fail(client: _Client, number: int) -> None:
    client.issue(password_request(client.row(number), "not the password"))


def _log_out(client: _Client, _: int) -> None:
    # Authenticating by token avoids the password hash.
    own = client.admin_token()
    methods = {"methods": ["token"], "token": {"id": own}}
    token = client.issue({"auth": {"identity": methods}})
    headers = {"X-Auth-Token": own, "X-Subject-Token": token}
    answer = client.send("DELETE", "/auth/tokens", headers=headers)
    if answer.status_code == requests.codes.unauthorized:
        client.admin_token(fresh=True)


def _write_grant(client: _Client, number: int, *, grant: str) -> None:
    method = "PUT" if number % 2 == 0 else "DELETE"
    headers = {"X-Auth-Token": client.admin_token()}
    answer = client.send(method, grant, headers=headers)
    if answer.status_code == requests.codes.unauthorized:
        client.admin_token(fresh=True)


CALLS: Final[Mapping[str, Callable[..., None]]] = {
    "log-in": _log_in,
    "wrong-password": _fail,
    "log-out": _log_out,
    "write-grant": _write_grant,
}


def run(host: Host, kind: str, per_second: float, **parameters: Any) -> None:
    """Send calls at a rate until the process ends."""
    client, call = _Client(host), CALLS[kind]
    free = BoundedSemaphore(AT_A_TIME)

    def send(number: int) -> None:
        with suppress(requests.RequestException):
            call(client, number, **parameters)
        free.release()

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        due = time.monotonic()
        for number in host.turns():
            free.acquire()
            pool.submit(send, number)
            if not number:
                ready()
            # Calls that were due while all were under way are left out.
            due = max(due + 1 / per_second, time.monotonic() - 1 / per_second)
            time.sleep(max(0.0, due - time.monotonic()))
