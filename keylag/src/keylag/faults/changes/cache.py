"""An empty cache, so that Keystone reads what has changed in the database."""

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keylag.services.base import HEALTH_TIMEOUT_SECONDS, HOST
from keylag.services.keystone import CACHE_SERVERS

if TYPE_CHECKING:
    from keylag.faults.site import Site

COMMANDS = {
    **dict.fromkeys(CACHE_SERVERS, b"flush_all\r\n"),
    "redis": b"FLUSHDB\r\n",
}
"""Service to the command that empties it; Redis' database 0 is the cache."""


@dataclass(frozen=True)
class FlushedCache:
    """Each memcached and Redis are emptied when the fault begins and when it ends."""

    def apply(self, site: "Site") -> None:
        """Empty the cache servers that answer."""
        for service, command in COMMANDS.items():
            try:
                address = (HOST, site.ports[service])
                with socket.create_connection(address, HEALTH_TIMEOUT_SECONDS) as one:
                    one.sendall(command)
                    one.recv(64)
            except (OSError, KeyError):
                continue

    def undo(self, site: "Site") -> None:
        """Empty them again."""
        self.apply(site)
