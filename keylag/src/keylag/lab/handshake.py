"""Prints how long TCP connections to an address take to open, in seconds.

    python -m keylag.lab.handshake ADDRESS PORT
    python -m keylag.lab.handshake ADDRESS PORT COUNT

The first listens, until it is stopped.  The second waits until the address answers, and
then opens so many connections, one after the other.
"""

import json
import socket
import sys
import time
from contextlib import suppress
from typing import Final

ANSWER_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 0.1
PAUSE_SECONDS: Final = 0.05
"""Between connections: with jitter, a packet waits for one sent just before it."""
TIMEOUT_SECONDS: Final = 60.0


def await_answer(address: tuple[str, int]) -> None:
    """Wait until a server listens; raises OSError after ANSWER_SECONDS."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        with suppress(ConnectionError):
            connect_seconds(address)
            return
        time.sleep(RETRY_SECONDS)
    connect_seconds(address)


def spaced_connect_seconds(address: tuple[str, int]) -> float:
    """Return how long a connection took to open, after a pause; raises OSError."""
    time.sleep(PAUSE_SECONDS)
    return connect_seconds(address)


def connect_seconds(address: tuple[str, int]) -> float:
    """Return how long a connection took to open; raises OSError."""
    begun = time.monotonic()
    with socket.create_connection(address, TIMEOUT_SECONDS):
        return time.monotonic() - begun


def listen(address: tuple[str, int]) -> None:
    """Accept connections and close them, until the process ends."""
    with socket.create_server(address) as server:
        while True:
            server.accept()[0].close()


def main() -> None:
    """Listen, or print a list of durations as JSON."""
    host, port, *counts = sys.argv[1:]
    address = (host, int(port))
    if not counts:
        listen(address)
    await_answer(address)
    found = [spaced_connect_seconds(address) for _ in range(int(counts[0]))]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
