"""What a machine does in a time: its processors, its disk, and who waits for them.

The counters are those of `keylag-exporter host`, with node_exporter's names.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, NamedTuple, Self

from prometheus_client.parser import text_string_to_metric_families

from keylag.lab.iproute import LabError
from keylag.lab.neighbours.window import Window
from keylag_exporters.host import HostSource

INTERVAL_SECONDS: Final = 0.5
PRESSURES: Final = (
    "cpu_waiting",
    *("io_waiting", "io_stalled"),
    *("memory_waiting", "memory_stalled"),
)
"""Waiting: PSI `some`; stalled: PSI `full`."""
SETTINGS: Final = {
    "proc": Path("/proc"),
    "sys": Path("/sys"),
    "cgroup": "",
    "limit": 64,
}

Counters = Mapping[tuple[str, ...], float]
"""Values by the name of the metric and the values of its labels."""


class Reading(NamedTuple):
    """The counters at a time."""

    unix_seconds: float
    counters: Counters


@dataclass(frozen=True)
class HostFigures:
    """The means of a time."""

    cpu: Mapping[str, float]
    """Shares of the time of all processors, by mode: `user`, `iowait`, `steal`, …"""
    disk_queue: float
    """Requests that waited or were served."""
    disk_utilisation: float
    """Share of the time in which there was any."""
    read_seconds: float
    """Of a read, with its time in the queue; 0 without any."""
    write_seconds: float
    flush_seconds: float
    requests_per_second: float
    """Reads, writes and flushes."""
    pressure: Mapping[str, float]
    """Shares of the time, by PRESSURES; those that the kernel does not count are 0."""

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return asdict(self)


class HostRecorder:
    """Reads the counters while the `with` body runs, twice a second."""

    def __init__(self) -> None:
        self._source = HostSource(SETTINGS)
        self._readings: list[Reading] = []
        self._ended = Event()
        self._thread = Thread(target=self._record, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def figures(self, window: Window, disk: str) -> HostFigures:
        """Return the figures of a window and a disk, such as `vda`; raises LabError."""
        inside = [
            one
            for one in self._readings
            if window.start <= one.unix_seconds <= window.end
        ]
        if len(inside) < 2:  # noqa: PLR2004 - a difference needs two
            message = f"{window.seconds:.1f} s are too short to measure the machine."
            raise LabError(message)
        _require_counted(disk, inside[-1].counters)
        return compute_figures(inside[0], inside[-1], disk)

    def _record(self) -> None:
        while True:
            text = self._source.collect().expose().decode()
            self._readings.append(Reading(time.time(), parse_counters(text)))
            if self._ended.wait(INTERVAL_SECONDS):
                return


def _require_counted(disk: str, counters: Counters) -> None:
    if ("node_disk_io_time_seconds_total", disk) not in counters:
        message = (
            f"{disk} has no counters of its own, as a loop device. Choose a folder on "
            "another disk for the laboratory."
        )
        raise LabError(message)


def parse_counters(text: str) -> Counters:
    """Return the values in the text of an exporter."""
    return {
        (one.name, *one.labels.values()): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def compute_figures(before: Reading, after: Reading, disk: str) -> HostFigures:
    """Return the figures of the time between two readings, and of one disk."""
    seconds = after.unix_seconds - before.unix_seconds

    def grown(*series: str) -> float:
        return after.counters.get(series, 0.0) - before.counters.get(series, 0.0)

    def on_disk(name: str) -> float:
        return grown(f"node_disk_{name}_total", disk)

    def mean_seconds(time_name: str, count_name: str) -> float:
        count = on_disk(count_name)
        return on_disk(time_name) / count if count else 0.0

    cpus = {one[1:] for one in after.counters if one[0] == "node_cpu_seconds_total"}
    times = dict.fromkeys((mode for _, mode in sorted(cpus)), 0.0)
    for cpu, mode in cpus:
        times[mode] += grown("node_cpu_seconds_total", cpu, mode)
    total = sum(times.values()) or 1.0
    counts = ("reads_completed", "writes_completed", "flush_requests")
    return HostFigures(
        cpu={mode: value / total for mode, value in times.items()},
        disk_queue=on_disk("io_time_weighted_seconds") / seconds,
        disk_utilisation=on_disk("io_time_seconds") / seconds,
        read_seconds=mean_seconds("read_time_seconds", "reads_completed"),
        write_seconds=mean_seconds("write_time_seconds", "writes_completed"),
        flush_seconds=mean_seconds("flush_requests_time_seconds", "flush_requests"),
        requests_per_second=sum(map(on_disk, counts)) / seconds,
        pressure={
            name: grown(f"node_pressure_{name}_seconds_total") / seconds
            for name in PRESSURES
        },
    )
