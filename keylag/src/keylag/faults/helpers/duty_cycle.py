"""Suspends a service for a share of the time."""

import time
from contextlib import suppress

import psutil

from keylag.faults.helpers.host import Host, ready
from keylag.processes import find_processes

SEARCH_SECONDS = 1.0
"""How often the service's processes are looked for; it may have restarted."""


def run(host: Host, service: str, period_ms: float, stopped_share: float) -> None:
    """Send SIGSTOP and SIGCONT in turn until the process ends."""
    stopped = period_ms * stopped_share / 1000
    running = period_ms * (1 - stopped_share) / 1000
    found: list[psutil.Process] = []
    search_at = 0.0
    try:
        ready()
        for _ in host.turns():
            if time.monotonic() > search_at:
                found = _processes(host, service)
                search_at = time.monotonic() + SEARCH_SECONDS
            _signal(found, "suspend")
            time.sleep(stopped)
            _signal(found, "resume")
            time.sleep(running)
    finally:
        _signal(found, "resume")


def _processes(host: Host, service: str) -> list[psutil.Process]:
    found = find_processes(stack=host.folder, service=service)
    return [one.process for one in found]


def _signal(found: list[psutil.Process], method: str) -> None:
    for process in found:
        with suppress(psutil.Error):
            getattr(process, method)()
