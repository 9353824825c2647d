"""Opens dashboards as a browser does, and measures each panel."""

import os
import statistics
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from keylag_cloud import prometheus
from keylag_cloud.grafana import OpenedPanel, Opening
from keylag_cloud.prometheus import Prometheus

CONNECTIONS: Final = 6
"""Requests that a browser has open to one server."""


@dataclass(frozen=True)
class PanelTime:
    """The seconds of one panel: all its queries, one after the other."""

    board: str
    panel: str
    range: str
    cold: float
    """The first time, with the files of Prometheus not in memory."""
    together: float
    """The median, with the whole dashboard opening."""
    alone: float
    """The median, with no other panel."""
    cpu: float
    """CPU time of Prometheus, alone."""
    bytes: int
    """Size of the responses."""
    slowest_query: str

    @property
    def worst(self) -> float:
        """The longest wait for the panel."""
        return max(self.cold, self.together, self.alone)


@dataclass(frozen=True)
class _Seconds:
    total: float
    size: int
    slowest: str


def measure_board(
    board: Path, folder: Path, range_: tuple[str, int], end: int, repeats: int
) -> list[PanelTime]:
    """Return the seconds of each panel of a dashboard."""
    name, seconds = range_
    forget_files(folder / "data")
    with prometheus.running(folder / "data", folder / "prometheus.log") as server:
        panels = list(Opening.of(board, server, seconds, end).panels())
    forget_files(folder / "data")
    with prometheus.running(folder / "data", folder / "prometheus.log") as server:
        cold = _open_together(server, panels)
        together = [_open_together(server, panels) for _ in range(repeats)]
        rows = []
        for number, panel in enumerate(panels):
            before = server.cpu_seconds()
            alone = [_ask(server, panel) for _ in range(repeats)]
            cpu = server.cpu_seconds() - before
            times = PanelTime(
                board=panel.board,
                panel=panel.title,
                range=name,
                cold=cold[number].total,
                together=_median(one[number].total for one in together),
                alone=_median(one.total for one in alone),
                cpu=cpu / repeats,
                bytes=alone[0].size,
                slowest_query=alone[-1].slowest,
            )
            rows.append(times)
    return rows


def forget_files(folder: Path) -> None:
    """Drop the files of a folder from the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _open_together(server: Prometheus, panels: Sequence[OpenedPanel]) -> list[_Seconds]:
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return list(pool.map(partial(_ask, server), panels))


def _ask(server: Prometheus, panel: OpenedPanel) -> _Seconds:
    times, size = {}, 0
    for query in panel.queries:
        started = time.monotonic()
        size += len(server.get_text(query.path, query.parameters))
        times[query.text] = time.monotonic() - started
    return _Seconds(sum(times.values()), size, max(times, key=lambda one: times[one]))


def _median(values: Iterable[float]) -> float:
    return statistics.median(list(values))
