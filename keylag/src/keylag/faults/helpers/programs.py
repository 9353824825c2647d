"""The helper programs by name.

python -m keylag.faults.helpers.programs relay '{"listen": ..., "upstream": ...}'
"""

import json
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from keylag.faults.helpers import (
    busy_loops,
    cache_connections,
    cache_flushes,
    cache_items,
    directory,
    duty_cycle,
    relay,
    row_locks,
    storm,
    table_locks,
    transactions,
    writes,
)
from keylag.faults.helpers.host import Host

PROGRAMS: Final[Mapping[str, Callable[..., None]]] = {
    "relay": relay.run,
    "busy-loops": busy_loops.run,
    "duty-cycle": duty_cycle.run,
    "storm": storm.run,
    "cache-items": cache_items.run,
    "cache-flushes": cache_flushes.run,
    "cache-connections": cache_connections.run,
    "directory": directory.run,
    "table-locks": table_locks.run,
    "row-locks": row_locks.run,
    "transactions": transactions.run,
    "writes": writes.run,
}
"""Each takes the Host and its parameters."""


def main() -> None:
    """Run a program until its fault is taken back."""
    name, parameters = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    host = Host()
    host.end_when_unwanted()
    arguments: dict[str, Any] = json.loads(parameters)
    PROGRAMS[name](host, **arguments)


if __name__ == "__main__":
    main()
