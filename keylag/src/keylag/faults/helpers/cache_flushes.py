"""Flushes memcached at a rate, as another application may that shares it."""

import time

from keylag.faults.helpers.host import Host, ready
from keylag.faults.helpers.memcached_client import MemcachedClient


def run(host: Host, address: str, per_second: float) -> None:
    """Send `flush_all` until the process ends."""
    client = MemcachedClient(address)
    next_flush = time.monotonic()
    for number in host.turns():
        client.flush()
        if not number:
            ready()
        next_flush += 1 / per_second
        time.sleep(max(0.0, next_flush - time.monotonic()))
