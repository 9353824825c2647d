"""Holds connections of a memcached, up to its limit."""

import select
import socket
import time
from typing import Final

from keylag.faults.helpers.host import Host, ready

TIMEOUT_SECONDS: Final = 0.5
POLL_SECONDS: Final = 0.1


def run(host: Host, address: str) -> None:
    """Connect until memcached rejects, and hold the connections."""
    name, port = address.split(":")
    held: list[socket.socket] = []
    for turn in host.turns():
        held = [one for one in held if not _is_closed(one)]
        while (one := _connect(name, int(port))) is not None:
            held.append(one)
        if not turn:
            ready()
        time.sleep(POLL_SECONDS)


def _connect(host: str, port: int) -> socket.socket | None:
    """Return a connection that memcached serves; None above its limit."""
    try:
        one = socket.create_connection((host, port), TIMEOUT_SECONDS)
    except OSError:
        return None
    try:
        one.sendall(b"version\r\n")
        if one.recv(64).startswith(b"VERSION"):
            return one
    except OSError:
        pass
    one.close()
    return None


def _is_closed(one: socket.socket) -> bool:
    readable, _, _ = select.select([one], [], [], 0)
    return bool(readable)
