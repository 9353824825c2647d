"""Finds the CPU limit of a cgroup, and how often the limit throttled it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Throttling:
    """What a CPU limit did to the cgroup that has it, since the cgroup was created."""

    group: str
    periods: int
    throttled_periods: int
    throttled_seconds: float


@dataclass(frozen=True)
class _Hierarchy:
    """Where a version of cgroups has its files, and how it writes them."""

    controller: str
    """Its name in /proc/self/cgroup."""
    folder: str
    limit: str
    no_limit: str
    throttled_time: str
    seconds: float
    """Seconds in a unit of `throttled_time`."""


_HIERARCHIES = (
    _Hierarchy("", "fs/cgroup", "cpu.max", "max", "throttled_usec", 1e-6),
    _Hierarchy(
        "cpu", "fs/cgroup/cpu", "cpu.cfs_quota_us", "-1", "throttled_time", 1e-9
    ),
)
"""Version 2, and version 1, which hosts of both use for the CPU."""


def read_file(path: Path | str) -> str:
    """Return the content of a file; empty if it is missing, disabled or forbidden.

    A host has thousands of some files: their paths are texts, which take less time.
    """
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - see above
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def find_throttling(proc: Path, sys: Path, group: str | None) -> Throttling | None:
    """Return the throttling of a cgroup by its own limit or the nearest one above it.

    `group` is a path below the root of the cgroups; the default is that of this
    process. Returns None without a limit.
    """
    for one in _HIERARCHIES:
        found = PurePosixPath("/", group or _own_group(proc, one.controller))
        for path in (found, *found.parents):
            folder = sys / one.folder / path.relative_to("/")
            limit = read_file(folder / one.limit)
            if limit and not limit.startswith(one.no_limit):
                return _read_throttling(one, str(path), folder)
    return None


def _own_group(proc: Path, controller: str) -> str:
    """Return the path of this process in the hierarchy of a controller."""
    for line in read_file(proc / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    return "/"


def _read_throttling(one: _Hierarchy, group: str, folder: Path) -> Throttling:
    statistics = dict(_numbers(read_file(folder / "cpu.stat")))
    return Throttling(
        group,
        statistics.get("nr_periods", 0),
        statistics.get("nr_throttled", 0),
        statistics.get(one.throttled_time, 0) * one.seconds,
    )


def _numbers(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        yield name, int(value)
