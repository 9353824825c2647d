"""The cache backends of Keystone, and the statistics of their servers."""

from __future__ import annotations

import socket
from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable

Counts = dict[str, int]

#: By port: the bytes that responses to our own requests add to the server's count.
_answered: Counter[int] = Counter()


@dataclass(frozen=True)
class Backend:
    """A value of `[cache] backend`, its server, and its other options by port."""

    name: str
    server: str | None = None
    options: Callable[[int], dict[str, Any]] = lambda _: {}

    def configuration(self, port: int) -> dict[str, dict[str, Any]]:
        return {"cache": {"backend": self.name, **self.options(port)}}


def _memcached(port: int) -> dict[str, Any]:
    return {"memcache_servers": f"127.0.0.1:{port}"}


def _redis(port: int) -> dict[str, Any]:
    return {"backend_argument": f"url:redis://127.0.0.1:{port}"}


#: In the order of the documentation; by the last part of the name.
BACKENDS = {
    backend.name.rpartition(".")[2]: backend
    for backend in (
        Backend("dogpile.cache.memcached", "memcached", _memcached),
        Backend("oslo_cache.memcache_pool", "memcached", _memcached),
        Backend("dogpile.cache.pymemcache", "memcached", _memcached),
        Backend("dogpile.cache.redis", "redis", _redis),
        Backend("dogpile.cache.memory"),
        Backend("dogpile.cache.null"),
    )
}
SERVICE_AGGREGATOR = {
    key: backend for key, backend in BACKENDS.items() if backend.server
}


def _ask(port: int, question: bytes, end: bytes) -> str:
    """Return a server's response to one command."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as server:
        server.sendall(question)
        while not answer.endswith(end):
            answer += server.recv(65536)
    return answer.decode()


def _own_answers(port: int, answer: str) -> int:
    """Return the length of the responses before this one."""
    before = _answered[port]
    _answered[port] += len(answer)
    return before


def memcached_counts(port: int) -> Counts:
    """Return memcached's statistics, without the responses to these commands."""
    answer = _ask(port, b"stats\r\n", b"END\r\n")
    stats = dict(line.split(" ")[1:] for line in answer.splitlines()[:-1])
    return {
        "get": int(stats["cmd_get"]),
        "set": int(stats["cmd_set"]),
        "hit": int(stats["get_hits"]),
        "received": int(stats["bytes_read"]),
        "sent": int(stats["bytes_written"]) - _own_answers(port, answer),
    }


def redis_counts(port: int) -> Counts:
    """Return the statistics of Redis, without the responses to these commands."""
    answer = _ask(port, b"INFO all\r\n", b"\r\n\r\n")
    stats = dict(line.split(":", 1) for line in answer.splitlines() if ":" in line)

    def calls(command: str) -> int:
        found = stats.get(f"cmdstat_{command}", "calls=0")
        return int(found.partition("=")[2].partition(",")[0])

    return {
        "get": calls("get"),
        "set": calls("set") + calls("setex"),
        "hit": int(stats["keyspace_hits"]),
        "received": int(stats["total_net_input_bytes"]),
        "sent": int(stats["total_net_output_bytes"]) - _own_answers(port, answer),
    }


SERVER_COUNTS: dict[str, Callable[[int], Counts]] = {
    "memcached": memcached_counts,
    "redis": redis_counts,
}
