"""Measures the parts of an HTTP exchange at the client."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

HTTP_PARTS: Final[Mapping[str, str]] = {
    "connect": "connecting",
    "tls": "TLS handshake",
    "wait": "waiting for the response",
    "body": "receiving the response",
}
"""Display names of the parts of an exchange, in their order."""


@dataclass(frozen=True)
class HttpExchange:
    """One request and its response, as the client measured it, in seconds."""

    method: str
    path: str
    status: int
    server_timing: str
    """Value of the Server-Timing header; empty if there is none."""
    total_seconds: float
    parts: Mapping[str, float]
    """Seconds by the names of HTTP_PARTS; parts that did not happen are absent."""

    @property
    def call(self) -> str:
        """Method and path."""
        return f"{self.method} {self.path}"


class TimingAdapter(HTTPAdapter):
    """A requests adapter that measures each request and keeps it in `exchanges`."""

    def __init__(self) -> None:
        self.exchanges: list[HttpExchange] = []
        self._seconds: dict[str, float] = {}
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Create connection pools whose connections measure their steps."""
        super().init_poolmanager(*args, **kwargs)
        manager: Any = self.poolmanager
        manager.pool_classes_by_scheme = {
            scheme: self._timed_pool(pool, scheme)
            for scheme, pool in manager.pool_classes_by_scheme.items()
        }

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """Send a request and receive the whole response."""
        self._seconds.clear()
        started = time.perf_counter()
        response = super().send(request, *args, **kwargs)
        with self._measure("body"):
            _ = response.content
        self.exchanges.append(
            HttpExchange(
                method=str(request.method),
                path=urlsplit(str(request.url)).path,
                status=response.status_code,
                server_timing=response.headers.get("Server-Timing", ""),
                total_seconds=time.perf_counter() - started,
                parts=_separate_tls(self._seconds),
            )
        )
        return response

    @contextmanager
    def _measure(self, part: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self._seconds[part] = time.perf_counter() - started

    def _timed_pool(self, pool: Any, scheme: str) -> Any:
        measure = self._measure
        connect_part = "tls" if scheme == "https" else "plain"

        class Connection(pool.ConnectionCls):  # type: ignore[misc]
            def _new_conn(self) -> Any:
                with measure("connect"):
                    return super()._new_conn()

            def connect(self) -> None:
                with measure(connect_part):
                    super().connect()

            def getresponse(self) -> Any:
                with measure("wait"):
                    return super().getresponse()

        return type("Pool", (pool,), {"ConnectionCls": Connection})


def _separate_tls(seconds: Mapping[str, float]) -> dict[str, float]:
    # The measured "tls" contains "connect".
    tls = seconds.get("tls", 0.0) - seconds.get("connect", 0.0)
    separate = {**seconds, "tls": tls}
    return {part: separate[part] for part in HTTP_PARTS if part in seconds}
