"""Flushes memcached at a rate, as another application may that shares it."""

from keylag.faults.helpers.host import Host
from keylag.faults.helpers.memcached_client import MemcachedClient


def run(host: Host, address: str, per_second: float) -> None:
    """Send `flush_all` until the process ends."""
    client = MemcachedClient(address)
    for _ in host.paced_turns(per_second):
        client.flush()
