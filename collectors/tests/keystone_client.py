"""A client inside Keystone's process: each reply carries what Keylag booked."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter_ns
from typing import Any

from keystone_site import PASSWORD
from werkzeug.test import EnvironBuilder

from keylag_otel import tally
from keylag_otel.clock import COUNTS, Clock
from keylag_otel.ledger import LEDGER, Ledger
from keylag_otel.model import CELLS

_NS_PER_SECOND = 1e9
DEFAULT_DOMAIN = {"id": "default"}
ADMIN_PROJECT = {"project": {"name": "admin", "domain": DEFAULT_DOMAIN}}


@dataclass(frozen=True)
class Booked:
    """A finished request as its clock has it; seconds."""

    status: int
    route: str | None
    auth_method: str | None
    cells: dict[tuple[str, str], float]
    counts: dict[str, int]
    tallies: dict[tuple[Any, ...], int]

    @property
    def wall(self) -> float:
        return sum(self.cells.values())

    def tallied(self, name: str, *values: Any) -> int:
        """Return the sum of an instrument's tallies that begin with `values`."""
        wanted = (name, *values)
        return sum(
            count for key, count in self.tallies.items() if key[: len(wanted)] == wanted
        )

    def phase(self, name: str) -> float:
        return sum(spent for (phase, _), spent in self.cells.items() if phase == name)

    def operation(self, name: str) -> float:
        return sum(spent for (_, step), spent in self.cells.items() if step == name)


@dataclass(frozen=True)
class Reply:
    """An answer, the seconds that its caller waited, and what was booked.

    When the application raises, a server answers 500 by itself.
    """

    status: int
    headers: dict[str, str]
    content: bytes
    waited: float
    booked: Booked

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def token(self) -> str:
        assert self.status == 201, self.content
        return self.headers["X-Subject-Token"]


def undisturbed(call: Callable[[], Reply]) -> Reply:
    """Make a call three times; return the one whose caller was least held up.

    Other work on the machine may stop us just outside of what is booked.
    """
    replies = [call() for _ in range(3)]
    return min(replies, key=lambda reply: abs(reply.waited - reply.booked.wall))


def booked(clock: Clock, status: int) -> Booked:
    """Return what a clock has booked, in words."""
    return Booked(
        status,
        clock.route,
        clock.auth_method,
        {CELLS[cell]: spent / _NS_PER_SECOND for cell, spent in clock.spent().items()},
        dict(zip(COUNTS, clock.counts)),
        {tally._keys[number]: count for number, count in clock.tallies.items()},
    )


def kept_beside(ledger: Ledger) -> list[Booked]:
    """Return a list that gets what is added to a ledger from now on."""
    finished: list[Booked] = []
    add = ledger.add

    def add_and_keep(clock: Clock, status: int) -> None:
        add(clock, status)
        finished.append(booked(clock, status))

    ledger.add = add_and_keep  # type: ignore[method-assign]
    return finished


class Keystone:
    """Keystone's application in this process, and each request it has finished."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.finished = kept_beside(LEDGER)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str | None = None,
        environ: dict[str, str] | None = None,
        **headers: str,
    ) -> Reply:
        """Send a request as a WSGI server does, and read all of the answer."""
        if token is not None:
            headers["X-Auth-Token"] = token
        environ = {**environ_of(method, path, body, headers), **(environ or {})}
        moment = perf_counter_ns()
        status, started, content = self._served(environ)
        waited = (perf_counter_ns() - moment) / _NS_PER_SECOND
        return Reply(status, dict(started), content, waited, self.finished[-1])

    def _served(self, environ: dict[str, Any]) -> tuple[int, Any, bytes]:
        """Return the status, the headers and all of the content."""
        started: list[Any] = []

        def start_response(*args: Any) -> None:
            started[:] = args

        try:
            parts = self.application(environ, start_response)
            content = b"".join(parts)
            getattr(parts, "close", str)()
        except Exception:  # noqa: BLE001 - as a WSGI server does
            return 500, (), b""
        return int(started[0][:3]), started[1], content

    def issue(self, auth: dict[str, Any], **headers: str) -> Reply:
        """Ask for a token."""
        return self.call("POST", "/v3/auth/tokens", {"auth": auth}, **headers)

    def validate(self, token: str, subject: str | None = None) -> Reply:
        """Ask about a token, or about itself."""
        headers = {"X-Subject-Token": subject or token}
        return self.call("GET", "/v3/auth/tokens", None, token, **headers)

    def make(self, path: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create a resource as the administrator, and return it."""
        reply = self.call("POST", path, {name: body}, self.admin)
        assert reply.status == 201, reply.content
        made: dict[str, Any] = reply.json[name]
        return made

    @cached_property
    def admin(self) -> str:
        """A token of the administrator."""
        return self.issue(password("admin")).token

    @cached_property
    def ids(self) -> dict[str, str]:
        """The ids of the administrator and of its project and role."""
        token = self.validate(self.admin).json["token"]
        role = next(role for role in token["roles"] if role["name"] == "admin")
        return {
            "user": token["user"]["id"],
            "project": token["project"]["id"],
            "role": role["id"],
        }


def environ_of(
    method: str, path: str, body: Any, headers: dict[str, str]
) -> dict[str, Any]:
    builder = EnvironBuilder(path, method=method, json=body, headers=headers)
    return builder.get_environ()


def password(
    name: str, secret: str = PASSWORD, scope: Any = ADMIN_PROJECT
) -> dict[str, Any]:
    """Return the body of a log-in with a password; no scope if `scope` is None."""
    user = {"name": name, "password": secret, "domain": DEFAULT_DOMAIN}
    auth: dict[str, Any] = {
        "identity": {"methods": ["password"], "password": {"user": user}}
    }
    return auth if scope is None else {**auth, "scope": scope}


def differences(before: dict[Any, float], after: dict[Any, float]) -> dict[Any, float]:
    """Return how much each value has grown."""
    grown: defaultdict[Any, float] = defaultdict(float, after)
    for key, value in before.items():
        grown[key] -= value
    return dict(grown)
