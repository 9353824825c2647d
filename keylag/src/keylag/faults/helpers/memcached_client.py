"""Just enough of memcached's protocol to write and flush items; it reconnects."""

import socket
import time
from collections.abc import Mapping
from typing import Final

TIMEOUT_SECONDS: Final = 2.0
RETRY_SECONDS: Final = 0.2


class MemcachedClient:
    """A connection to a memcached."""

    def __init__(self, address: str) -> None:
        host, _, port = address.partition(":")
        self._address = (host, int(port))
        self._socket: socket.socket | None = None

    def store(self, items: Mapping[str, bytes]) -> None:
        """Write items."""
        self._send(
            b"".join(
                b"set %s 0 0 %d noreply\r\n%s\r\n" % (key.encode(), len(value), value)
                for key, value in items.items()
            )
        )

    def flush(self) -> None:
        """Make all items invalid."""
        self._send(b"flush_all noreply\r\n")

    def _send(self, text: bytes) -> None:
        """Send a command without waiting for a response; a failure is no error."""
        try:
            if self._socket is None:
                self._socket = socket.create_connection(self._address, TIMEOUT_SECONDS)
            self._socket.sendall(text)
        except OSError:
            self._socket = None
            time.sleep(RETRY_SECONDS)
