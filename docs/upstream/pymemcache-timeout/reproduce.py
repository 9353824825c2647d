"""Reads from a cache server that accepts connections and never answers."""

import socket
import threading
import time

from dogpile.cache.api import NO_VALUE
from dogpile.cache.backends.memcached import PyMemcacheBackend

TIMEOUT_SECONDS = 0.5
LONGEST_SECONDS = 3.0


def find_fault() -> str:
    """Return how much longer than its time-out a read may take."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        backend = PyMemcacheBackend(
            # What oslo.cache passes for `[cache] socket_timeout = 0.5`.
            {"url": [f"{host}:{port}"], "socket_timeout": TIMEOUT_SECONDS}
        )
        values = []
        thread = threading.Thread(
            target=lambda: values.append(backend.get("key")), daemon=True
        )
        begun = time.monotonic()
        thread.start()
        thread.join(LONGEST_SECONDS)
        seconds = time.monotonic() - begun
        if thread.is_alive():
            return (
                f"a read still waited after {seconds:.0f} s, with a socket_timeout of "
                f"{TIMEOUT_SECONDS} s"
            )
        if values != [NO_VALUE]:
            return "a server without an answer was no miss"
        return find_hidden_timeout(f"{host}:{port}")


def find_hidden_timeout(address: str) -> str:
    """Return what a client that retries does not see."""
    backend = PyMemcacheBackend(
        {
            "url": [address],
            "socket_timeout": TIMEOUT_SECONDS,
            "enable_retry_client": True,
            "retry_attempts": 1,
        }
    )
    try:
        backend.get("key")
    except OSError:
        return ""
    return "a client that retries does not see the time-out"
