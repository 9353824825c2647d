"""Writes items of other keys into memcached, so that it evicts Keystone's."""

import random

from keylag.faults.helpers.host import Host
from keylag.faults.helpers.memcached_client import MemcachedClient

SIZES = (200, 500, 1000, 2000, 4000, 8000, 16000)
"""Bytes of items, in all slab classes that Keystone's items use."""
WEIGHTS = tuple(1 / size for size in SIZES)
"""As many bytes for each slab class, so all of them evict after the same time."""
BATCH = 50


def run(host: Host, address: str, per_second: float) -> None:
    """Write items until the process ends."""
    client = MemcachedClient(address)
    random_sizes = random.Random(1)  # noqa: S311 - no secret
    for batch in host.paced_turns(per_second / BATCH):
        sizes = random_sizes.choices(SIZES, WEIGHTS, k=BATCH)
        client.store(
            {
                f"keylag-{batch}-{number}": b"x" * size
                for number, size in enumerate(sizes)
            }
        )
