"""Measures token calls with a few clients."""

import itertools
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

import requests

from keylag import users_csv
from keylag.breakdown import quantile
from keylag.faults.model import DELETE, GET, POST, SERVICE
from keylag.sample_cloud import users_file
from keylag.stack_info import StackInfo

ISSUED: Final = 24
"""Number of measured tokens."""
VALIDATIONS_PER_TOKEN: Final = 3
"""The first one after its issue is not yet cached in full."""
TIMEOUT_SECONDS: Final = 15.0
"""How long a call may take."""
LIMIT_SECONDS: Final = 30.0
"""How long a measurement may take; calls that have begun end."""
CACHED_TOKENS: Final = 4
"""Tokens with which the service is called."""


@dataclass(frozen=True)
class Latency:
    """The latency of one kind of call, in seconds."""

    calls: int
    errors: int
    """Calls that failed, or took longer than TIMEOUT_SECONDS."""
    p50: float
    p95: float

    @classmethod
    def of(cls, seconds: Sequence[float], errors: int) -> "Latency":
        """Return the latency of calls; that of none is not a number."""
        ordered = sorted(seconds)
        quantiles = (
            quantile(ordered, share) if ordered else math.nan for share in (0.5, 0.95)
        )
        return cls(len(ordered), errors, *quantiles)


Measurement = Mapping[str, Latency]
"""Latency by kind of call: POST, GET, DELETE, SERVICE."""


def password_request(row: Mapping[str, str], password: str = "") -> dict[str, Any]:
    """Return the body that requests a token for a row of the users' file."""
    user = {
        "name": row["username"],
        "domain": {"name": row["user_domain"]},
        "password": password or row["password"],
    }
    identity = {"methods": ["password"], "password": {"user": user}}
    domain = {"name": row["project_domain"]}
    scope = {"project": {"name": row["project"], "domain": domain}}
    return {"auth": {"identity": identity, "scope": scope}}


def read_users(stack: StackInfo) -> list[dict[str, str]]:
    """Return the rows of a stack's users' file."""
    return users_csv.read_rows(users_file(stack))


def admin_row(stack: StackInfo) -> dict[str, str]:
    """Return the administrator, as a row of the users' file."""
    admin = stack.admin()
    return {
        "username": admin.username,
        "password": admin.password,
        "user_domain": "Default",
        "project": admin.project_name,
        "project_domain": "Default",
    }


class Probe:
    """Sends token calls to a stack; threads may share it."""

    def __init__(self, stack: StackInfo) -> None:
        self._url = f"{stack.url('keystone')}/v3/auth/tokens"
        self._service = stack.url("service") if "service" in stack.ports else ""
        self._users = itertools.cycle(read_users(stack))
        self._admin = admin_row(stack)
        self._lock = Lock()
        self._seconds: dict[str, list[float]] = {}
        self._errors: dict[str, int] = {}
        self._ends = math.inf
        self._caller = ""

    def measure(self, clients: int, kinds: Collection[str] = ()) -> Measurement:
        """Warm Keystone up, then measure calls of several clients at a time.

        POST and GET are always measured, DELETE and SERVICE if `kinds` has them.  A
        DELETE slows the calls after it: Keystone flushes what it has cached of tokens.
        """
        self._caller = self._caller or self._admin_token()
        with ThreadPoolExecutor(clients) as pool:
            for rounds in (clients, ISSUED):
                sent = (POST, GET, *({DELETE} & {*kinds}))
                self._seconds = {kind: [] for kind in sent}
                self._errors = dict.fromkeys(sent, 0)
                self._ends = time.monotonic() + LIMIT_SECONDS
                list(pool.map(self._call_keystone, range(rounds)))
            if SERVICE in kinds:
                self._measure_service(pool)
        return {
            kind: Latency.of(seconds, self._errors[kind])
            for kind, seconds in self._seconds.items()
        }

    def _measure_service(self, pool: ThreadPoolExecutor) -> None:
        tokens = []
        for _ in range(CACHED_TOKENS):
            with suppress(requests.RequestException):
                tokens.append(self._issue()[0])
        for rounds in (CACHED_TOKENS, ISSUED):
            self._seconds[SERVICE], self._errors[SERVICE] = [], 0
            in_turn = itertools.islice(itertools.cycle(tokens), rounds)
            list(pool.map(self._call_service, in_turn))

    def _call_keystone(self, _: int) -> None:
        if time.monotonic() > self._ends:
            return
        token = self._timed(POST, self._issue)
        headers = {"X-Auth-Token": self._caller, "X-Subject-Token": token}
        last = (DELETE,) if DELETE in self._seconds else ()
        for method in (*(GET,) * VALIDATIONS_PER_TOKEN, *last):
            if token and time.monotonic() < self._ends:
                self._timed(method, lambda: _send(method, self._url, headers))  # noqa: B023

    def _call_service(self, token: str) -> None:
        headers = {"X-Auth-Token": token}
        self._timed(SERVICE, lambda: _send(GET, self._service, headers))

    def _timed(self, kind: str, call: Callable[[], tuple[str, bool]]) -> str:
        started = time.perf_counter()
        try:
            token, failed = call()
        except requests.RequestException:
            token, failed = "", True
        seconds = time.perf_counter() - started
        with self._lock:
            self._seconds[kind].append(seconds)
            self._errors[kind] += failed
        return token

    def _issue(self) -> tuple[str, bool]:
        with self._lock:
            row = next(self._users)
        return _post(self._url, password_request(row))

    def _admin_token(self) -> str:
        try:
            return _post(self._url, password_request(self._admin))[0]
        except requests.RequestException:
            return ""


def _post(url: str, body: Mapping[str, Any]) -> tuple[str, bool]:
    answer = requests.post(url, json=body, timeout=TIMEOUT_SECONDS)
    return answer.headers.get("X-Subject-Token", ""), not answer.ok


def _send(method: str, url: str, headers: Mapping[str, str]) -> tuple[str, bool]:
    answer = requests.request(method, url, headers=headers, timeout=TIMEOUT_SECONDS)
    return "", not answer.ok
