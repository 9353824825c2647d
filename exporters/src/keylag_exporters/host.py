"""The host source: CPU, pressure, disks and listen queues, under official names.

Names and labels are those of node_exporter, and of cAdvisor for throttling. Each part
reads one file of the kernel. If the kernel does not have it, its metrics are absent.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keylag_exporters.cgroup import find_throttling, read_file
from keylag_exporters.families import Families
from keylag_exporters.metric import Metric
from keylag_exporters.model import Option, SourceType, UnreachableError
from keylag_exporters.settings import parse_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
MICROSECONDS_PER_SECOND = 1_000_000
KIBIBYTE = 1024
CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
OTHER = "other"
BACKWARD_SECONDS = 3.0
"""The kernel's CPU times go back a little now and then. A greater step is a CPU that
was taken out and put back."""
UNCOUNTED_DEVICES = re.compile(
    r"(loop|ram|zram|fd)\d+|(sd|hd|vd|xvd)[a-z]+\d+|(nvme\d+n|mmcblk)\d+p\d+"
)
"""Partitions, whose disk is counted, and devices in memory and on files."""

# (file in /proc/pressure, line, metric, help)
PRESSURE = (
    ("cpu", "some", "cpu_waiting", "Time in which a task waited for a CPU."),
    ("io", "some", "io_waiting", "Time in which a task waited for I/O."),
    ("io", "full", "io_stalled", "Time in which all tasks waited for I/O."),
    ("memory", "some", "memory_waiting", "Time in which a task waited for memory."),
    ("memory", "full", "memory_stalled", "Time in which all tasks waited for memory."),
)
# (name in /proc/net/netstat, help)
LISTEN_QUEUES = (
    ("ListenOverflows", "Connections that found the queue of a listening socket full."),
    ("ListenDrops", "Connections that a listening socket dropped."),
)
# (name in /proc/vmstat, help)
PAGING = (
    ("pgmajfault", "Page faults that read from a disk."),
    ("pswpin", "Pages read from swap."),
    ("pswpout", "Pages written to swap."),
)
# (name in /proc/meminfo, help)
MEMORY = (
    ("MemTotal", "Memory of the host."),
    ("MemAvailable", "Memory that programs can get without swapping."),
)
# (column of /proc/diskstats, metric, its units per unit of the metric, help)
DISKS = (
    (3, "reads_completed_total", 1, "Reads completed."),
    (6, "read_time_seconds_total", 1000, "Sum of the times of all reads."),
    (7, "writes_completed_total", 1, "Writes completed."),
    (10, "write_time_seconds_total", 1000, "Sum of the times of all writes."),
    (12, "io_time_seconds_total", 1000, "Time in which the disk was busy."),
    (13, "io_time_weighted_seconds_total", 1000, "Time of all requests in the queue."),
    (18, "flush_requests_total", 1, "Flushes completed; since Linux 5.5."),
    (19, "flush_requests_time_seconds_total", 1000, "Sum of the times of all flushes."),
)
_CGROUP = ("id",)

METRICS = (
    Metric(
        "node_cpu_seconds_total",
        "counter",
        "CPU time by mode; `other` is the sum of the CPUs above the limit.",
        ("cpu", "mode"),
    ),
    *(
        Metric(f"node_pressure_{name}_seconds_total", "counter", text)
        for _, _, name, text in PRESSURE
    ),
    *(
        Metric(f"node_netstat_TcpExt_{name}", "gauge", text)
        for name, text in LISTEN_QUEUES
    ),
    *(Metric(f"node_vmstat_{name}", "gauge", text) for name, text in PAGING),
    *(Metric(f"node_memory_{name}_bytes", "gauge", text) for name, text in MEMORY),
    Metric("node_load1", "gauge", "Tasks that ran or waited, over a minute."),
    *(Metric(f"node_disk_{n}", "counter", t, ("device",)) for _, n, _, t in DISKS),
    Metric(
        "container_cpu_cfs_periods_total",
        "counter",
        "Periods of the CPU limit in which the cgroup ran; absent without a limit.",
        _CGROUP,
    ),
    Metric(
        "container_cpu_cfs_throttled_periods_total",
        "counter",
        "Periods in which the CPU limit stopped the cgroup.",
        _CGROUP,
    ),
    Metric(
        "container_cpu_cfs_throttled_seconds_total",
        "counter",
        "Time for which the CPU limit stopped the cgroup.",
        _CGROUP,
    ),
)


class HostSource:
    """Reads the files of one kernel."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._proc, self._sys = settings["proc"], settings["sys"]
        self._cgroup = settings["cgroup"]
        self._limit = settings["limit"]
        self._cpu_seconds: dict[tuple[str, str], float] = {}

    def collect(self) -> Families:
        """Return all families; raises UnreachableError if this is no /proc."""
        families = Families(METRICS)
        self._add_cpus(families)
        pressure = {file: self._read("pressure", file) for file, *_ in PRESSURE}
        for file, line, name, _ in PRESSURE:
            found = re.search(rf"{line} .*total=(\d+)", pressure[file])
            if found:
                seconds = int(found[1]) / MICROSECONDS_PER_SECOND
                families.add(f"node_pressure_{name}_seconds_total", seconds)
        for name, value in _tcp_counters(self._read("net", "netstat")):
            families.add(f"node_netstat_TcpExt_{name}", value)
        for name, value in _numbers(PAGING, self._read("vmstat")):
            families.add(f"node_vmstat_{name}", value)
        for name, value in _numbers(MEMORY, self._read("meminfo")):
            families.add(f"node_memory_{name}_bytes", value * KIBIBYTE)
        for load in self._read("loadavg").split()[:1]:
            families.add("node_load1", float(load))
        self._add_disks(families)
        self._add_throttling(families)
        return families

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _read(self, *names: str) -> str:
        return read_file(self._proc.joinpath(*names))

    def _add_cpus(self, families: Families) -> None:
        lines = re.findall(r"^cpu(\d+) (.*)", self._read("stat"), re.MULTILINE)
        if not lines:
            message = f"{self._proc}/stat has no CPUs; is {self._proc} a /proc?"
            raise UnreachableError(message)
        sums: defaultdict[tuple[str, str], int] = defaultdict(int)
        for at, (cpu, times) in enumerate(lines):
            label = cpu if at < self._limit else OTHER
            for mode, ticks in zip(CPU_MODES, times.split(), strict=False):
                sums[label, mode] += int(ticks)
        for series, ticks_of_series in sums.items():
            seconds = ticks_of_series / TICKS_PER_SECOND
            latest = self._cpu_seconds.get(series, seconds)
            if not 0 < latest - seconds < BACKWARD_SECONDS:
                latest = self._cpu_seconds[series] = seconds
            families.add("node_cpu_seconds_total", latest, *series)

    def _add_disks(self, families: Families) -> None:
        sums: defaultdict[tuple[str, str], float] = defaultdict(float)
        rows = map(str.split, self._read("diskstats").splitlines())
        disks = (row for row in rows if not UNCOUNTED_DEVICES.fullmatch(row[2]))
        for at, row in enumerate(disks):
            device = row[2] if at < self._limit else OTHER
            for column, name, units, _ in DISKS:
                if column < len(row):
                    sums[name, device] += int(row[column]) / units
        for (name, device), value in sums.items():
            families.add(f"node_disk_{name}", value, device)

    def _add_throttling(self, families: Families) -> None:
        found = find_throttling(self._proc, self._sys, self._cgroup)
        if found is None:
            return
        for name, value in (
            ("periods", found.periods),
            ("throttled_periods", found.throttled_periods),
            ("throttled_seconds", found.throttled_seconds),
        ):
            families.add(f"container_cpu_cfs_{name}_total", value, found.group)


def _tcp_counters(text: str) -> Iterator[tuple[str, int]]:
    """Yield LISTEN_QUEUES of a file with a line of names above a line of values."""
    lines = [line.split() for line in text.splitlines() if line.startswith("TcpExt:")]
    values = dict(zip(*lines, strict=True)) if lines else {}
    for name, _ in LISTEN_QUEUES:
        if name in values:
            yield name, int(values[name])


def _numbers(rows: tuple[tuple[str, str], ...], text: str) -> Iterator[tuple[str, int]]:
    """Yield the rows of a file with a name and a number in each line."""
    for name, _ in rows:
        found = re.search(rf"\n{name}:? +(\d+)", f"\n{text}")
        if found:
            yield name, int(found[1])


SOURCE_TYPE = SourceType(
    name="host",
    help="Read CPU, pressure, disks and listen queues of a host without node_exporter."
    " Metric names are those of node_exporter and cAdvisor.",
    options=(
        Option("proc", "The /proc of the host.", Path, Path("/proc")),
        Option("sys", "The /sys of the host.", Path, Path("/sys")),
        Option(
            "cgroup",
            "Cgroup whose CPU limit matters, such as system.slice/keystone.service;"
            " without it, that of the exporter.",
        ),
        Option(
            "limit",
            "Number of CPUs and of disks with series of their own.",
            parse_count,
            64,
        ),
    ),
    metrics=METRICS,
    create=HostSource,
    port=9100,
    interval=1.0,
)
