"""A client in the process of Keystone: each reply has its breakdown."""

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

from keylag_otel import counters
from keylag_otel.model import CALL_KINDS, CELLS
from keylag_otel.request_aggregator import AGGREGATOR, RequestAggregator
from keylag_otel.request_timer import COUNTS, RequestTimer

_NS_PER_SECOND = 1e9
DEFAULT_DOMAIN = {"id": "default"}
ADMIN_PROJECT = {"project": {"name": "admin", "domain": DEFAULT_DOMAIN}}


@dataclass(frozen=True)
class Breakdown:
    """The breakdown of a finished request; seconds."""

    status: int
    route: str | None
    auth_method: str | None
    cells: dict[tuple[str, str], float]
    counts: dict[str, int]
    counters: dict[tuple[Any, ...], int]
    calls: dict[tuple[str, str], int]

    @property
    def wall_seconds(self) -> float:
        return sum(self.cells.values())

    def counter_sum(self, name: str, *values: Any) -> int:
        """Return the sum of the counters whose values begin with `values`."""
        wanted = (name, *values)
        return sum(
            count
            for key, count in self.counters.items()
            if key[: len(wanted)] == wanted
        )

    def phase(self, name: str) -> float:
        return sum(spent for (phase, _), spent in self.cells.items() if phase == name)

    def operation(self, name: str) -> float:
        return sum(spent for (_, step), spent in self.cells.items() if step == name)


@dataclass(frozen=True)
class Reply:
    """A response, the seconds that the caller waited, and the breakdown.

    As with a server, the status is 500 if the application raises.
    """

    status: int
    headers: dict[str, str]
    content: bytes
    waited: float
    breakdown: Breakdown

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def token(self) -> str:
        assert self.status == 201, self.content
        return self.headers["X-Subject-Token"]


def least_disturbed(call: Callable[[], Reply]) -> Reply:
    """Make a call three times; return the reply least affected by other processes."""
    replies = [call() for _ in range(3)]
    return min(
        replies, key=lambda reply: abs(reply.waited - reply.breakdown.wall_seconds)
    )


def breakdown_of(timer: RequestTimer, status: int) -> Breakdown:
    """Return the breakdown of a timer with the names of cells and counters."""
    return Breakdown(
        status,
        timer.route,
        timer.auth_method,
        {
            CELLS[cell]: spent / _NS_PER_SECOND
            for cell, spent in timer.self_times().items()
        },
        dict(zip(COUNTS, timer.counts)),
        {counters._keys[number]: count for number, count in timer.counters.items()},
        {CALL_KINDS[kind]: sum(times[1:]) for kind, times in timer.calls.items()},
    )


def record_breakdowns(aggregator: RequestAggregator) -> list[Breakdown]:
    """Return a list of the breakdowns that are added to an aggregator from now on."""
    finished: list[Breakdown] = []
    add = aggregator.add

    def add_and_keep(timer: RequestTimer, status: int) -> None:
        add(timer, status)
        finished.append(breakdown_of(timer, status))

    aggregator.add = add_and_keep  # type: ignore[method-assign]
    return finished


class Keystone:
    """Keystone's application in this process, with the breakdown of each request."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.breakdowns = record_breakdowns(AGGREGATOR)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str | None = None,
        environ: dict[str, str] | None = None,
        **headers: str,
    ) -> Reply:
        """Send a request as a WSGI server does, and read the whole response."""
        if token is not None:
            headers["X-Auth-Token"] = token
        environ = {**environ_of(method, path, body, headers), **(environ or {})}
        moment = perf_counter_ns()
        status, started, content = self._served(environ)
        waited = (perf_counter_ns() - moment) / _NS_PER_SECOND
        return Reply(status, dict(started), content, waited, self.breakdowns[-1])

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
        """Issue a token."""
        return self.call("POST", "/v3/auth/tokens", {"auth": auth}, **headers)

    def validate(self, token: str, subject: str | None = None) -> Reply:
        """Validate a token, by default with itself."""
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
