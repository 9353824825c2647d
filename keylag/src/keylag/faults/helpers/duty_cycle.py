"""Suspends a service for a share of the time."""

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from keylag.faults.helpers.host import Host, ready
from keylag.processes import find_processes

SEARCH_SECONDS = 1.0
"""How often the service's processes are looked for; it may have restarted."""


def run(host: Host, service: str, period_ms: float, stopped_share: float) -> None:
    """Send SIGSTOP and SIGCONT in turn until the process ends."""
    ready()
    suspend(host.folder, service, period_ms / 1000, stopped_share, host.turns())


def suspend(
    stack: Path,
    service: str,
    period_seconds: float,
    stopped_share: float,
    turns: Iterable[object],
) -> None:
    """Suspend a service of a stack for a share of each of some turns."""
    found: list[psutil.Process] = []
    search_at = 0.0
    try:
        for _ in turns:
            if time.monotonic() > search_at:
                found = _processes(stack, service)
                search_at = time.monotonic() + SEARCH_SECONDS
            _signal(found, "suspend")
            time.sleep(period_seconds * stopped_share)
            _signal(found, "resume")
            time.sleep(period_seconds * (1 - stopped_share))
    finally:
        _signal(found, "resume")


def _processes(stack: Path, service: str) -> list[psutil.Process]:
    found = find_processes(stack=stack, service=service)
    return [one.process for one in found]


def _signal(found: list[psutil.Process], method: str) -> None:
    for process in found:
        with suppress(psutil.Error):
            getattr(process, method)()
