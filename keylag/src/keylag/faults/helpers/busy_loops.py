"""Processes that use all the processor time they get."""

import multiprocessing

from keylag.faults.helpers.host import Host, ready


def _work(host: Host) -> None:
    host.end_when_unwanted()
    number = 1
    while True:
        number = number * 1103515245 % 2147483647 + 1


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
