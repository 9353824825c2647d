"""What a client sees of a call: how long each part of it took from outside."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

PARTS: Final[Mapping[str, str]] = {
    "connect": "connecting",
    "tls": "TLS handshake",
    "wait": "waiting for the answer to begin",
    "body": "receiving it",
}
"""Parts of an exchange in their order, in words."""


@dataclass(frozen=True)
class Exchange:
    """One request and its answer, at the client; times in seconds."""

    method: str
    path: str
    status: int
    server_timing: str
    """The header's value; empty without one."""
    total_seconds: float
    parts: Mapping[str, float]
    """By the names of PARTS; one that did not happen is not there."""

    @property
    def call(self) -> str:
        """Method and path."""
        return f"{self.method} {self.path}"


class Stopwatch(HTTPAdapter):
    """Sends requests as usual and keeps an Exchange of each in `exchanges`."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self._spent: dict[str, float] = {}
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Have connections made that tell what they do."""
        super().init_poolmanager(*args, **kwargs)
        manager: Any = self.poolmanager
        manager.pool_classes_by_scheme = {
            scheme: self._timed_pool(pool, scheme)
            for scheme, pool in manager.pool_classes_by_scheme.items()
        }

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """Send a request and receive all of its answer."""
        self._spent.clear()
        started = time.perf_counter()
        answer = super().send(request, *args, **kwargs)
        with self._timing("body"):
            _ = answer.content
        self.exchanges.append(
            Exchange(
                method=str(request.method),
                path=urlsplit(str(request.url)).path,
                status=answer.status_code,
                server_timing=answer.headers.get("Server-Timing", ""),
                total_seconds=time.perf_counter() - started,
                parts=_in_order(self._spent),
            )
        )
        return answer

    @contextmanager
    def _timing(self, part: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._spent[part] = time.perf_counter() - started

    def _timed_pool(self, pool: Any, scheme: str) -> Any:
        timing = self._timing
        connecting = "tls" if scheme == "https" else "plain"

        class Connection(pool.ConnectionCls):  # type: ignore[misc]
            def _new_conn(self) -> Any:
                with timing("connect"):
                    return super()._new_conn()

            def connect(self) -> None:
                with timing(connecting):
                    super().connect()

            def getresponse(self) -> Any:
                with timing("wait"):
                    return super().getresponse()

        return type("Pool", (pool,), {"ConnectionCls": Connection})


def _in_order(spent: Mapping[str, float]) -> dict[str, float]:
    """Take the time of connecting out of what was spent on it and TLS together."""
    alone = {**spent, "tls": spent.get("tls", 0.0) - spent.get("connect", 0.0)}
    return {part: alone[part] for part in PARTS if part in spent}
