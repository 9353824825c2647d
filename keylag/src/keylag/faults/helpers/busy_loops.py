"""Processes that use all the processor time they get."""

import multiprocessing

from keylag.faults.helpers.host import Host, ready

OPERATIONS = 3_000_000
"""Of one turn, which takes some ten milliseconds."""


def _work(host: Host) -> None:
    for _ in host.turns():
        sum(range(OPERATIONS))


def run(host: Host, loops: int) -> None:
    """Run busy loops until the process ends; they end with it."""
    children = [
        multiprocessing.Process(target=_work, args=(host,), daemon=True)
        for _ in range(loops)
    ]
    for child in children:
        child.start()
    ready()
    for child in children:
        child.join()
