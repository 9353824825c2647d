"""Prints how long TCP connections to an address take to open, in seconds.

    python -m keylag.lab.handshake ADDRESS PORT COUNT

Waits until the address answers; that connection does not count.
"""

import json
import socket
import sys
import time
from contextlib import suppress
from typing import Final

ANSWER_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 0.1
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


def connect_seconds(address: tuple[str, int]) -> float:
    """Return how long a connection took to open; raises OSError."""
    begun = time.monotonic()
    with socket.create_connection(address, TIMEOUT_SECONDS):
        return time.monotonic() - begun


def main() -> None:
    """Print a list of durations as JSON."""
    host, port, count = sys.argv[1:]
    address = (host, int(port))
    await_answer(address)
    json.dump([connect_seconds(address) for _ in range(int(count))], sys.stdout)


if __name__ == "__main__":
    main()
