"""Queries of *Host*: CPU, pressure, disks, memory, and the programs that use them."""

from collections.abc import Mapping
from typing import Final

from keylag_dashboards.categories import TITLES
from keylag_dashboards.queries import tokens

SHOWN_PROGRAMS: Final = 7
"""Programs with a line of their own, those that use most."""
PRESSURES: Final[Mapping[str, str]] = {
    "CPU": "cpu_waiting",
    "disk": "io_waiting",
    "disk, all tasks": "io_stalled",
    "memory": "memory_waiting",
    "memory, all tasks": "memory_stalled",
}
REQUESTS: Final[Mapping[str, tuple[str, str]]] = {
    "read": ("read_time_seconds_total", "reads_completed_total"),
    "write": ("write_time_seconds_total", "writes_completed_total"),
    "flush": ("flush_requests_time_seconds_total", "flush_requests_total"),
}
"""Time and number of each kind of request to a disk."""
_CPU: Final = "namedprocess_namegroup_cpu_seconds_total"
_READ: Final = "namedprocess_namegroup_read_bytes_total"
_WRITTEN: Final = "namedprocess_namegroup_write_bytes_total"
_RUN: Final = """sum by (groupname) (
    namedprocess_namegroup_num_procs{MACHINE}) > 0"""


def _rate(metric: str) -> str:
    return f"rate({metric}{{MACHINE}}[RATE])"


def _disk_rate(name: str) -> str:
    return f"sum by (instance, device) ({_rate(f'node_disk_{name}')})"


def _by_program(metric: str, window: str = "RATE") -> str:
    return f"sum by (groupname) (rate({metric}{{MACHINE}}[{window}]))"


def _running(query: str) -> str:
    """Return a query without programs of which no process runs now."""
    return f"{query} and on (groupname) {_RUN}"


def _most(metric: str) -> str:
    """Return the rate of the programs with most of it over the time shown."""
    shown = f"sum by (groupname) (rate({metric}{{MACHINE}}[SHOWN] @ end()))"
    return f"""{_by_program(metric)}
        and on (groupname) topk({SHOWN_PROGRAMS}, {shown})"""


QUERIES: Final[Mapping[str, str]] = {
    **{f"category_{name}": tokens.QUERIES[f"category_{name}"] for name in TITLES},
    **{
        name: f"max({_rate(f'node_pressure_{name}_seconds_total')})"
        for name in PRESSURES.values()
    },
    "modes": """sum by (mode) (
        rate(node_cpu_seconds_total{MACHINE, mode!="idle"}[RATE]))
        / on () group_left () sum(rate(node_cpu_seconds_total{MACHINE}[RATE]))""",
    "stopped": """max by (id) (
        rate(container_cpu_cfs_throttled_seconds_total{MACHINE}[RATE]))""",
    "overflows": f"sum({_rate('node_netstat_TcpExt_ListenOverflows')})",
    **{
        f"{name}_seconds": f"max({_disk_rate(time)} / ({_disk_rate(count)} > 0))"
        for name, (time, count) in REQUESTS.items()
    },
    "queue": f"max by (device) ({_rate('node_disk_io_time_weighted_seconds_total')})",
    "busy": f"""clamp_max(
        max by (device) ({_rate("node_disk_io_time_seconds_total")}), 1)""",
    "available": """min(node_memory_MemAvailable_bytes{MACHINE}
        / node_memory_MemTotal_bytes{MACHINE})""",
    "faults": f"sum({_rate('node_vmstat_pgmajfault')})",
    "swapped_in": f"sum({_rate('node_vmstat_pswpin')})",
    "swapped_out": f"sum({_rate('node_vmstat_pswpout')})",
    "programs_cpu": _most(_CPU),
    "programs_written": _most(_WRITTEN),
    "programs_read": _most(_READ),
    "program_cpu": _running(_by_program(_CPU, "SHOWN")),
    "program_number": _RUN,
    "program_memory": _running(
        """sum by (groupname) (
        namedprocess_namegroup_memory_bytes{MACHINE, memtype="resident"})"""
    ),
    "program_read": _running(_by_program(_READ, "SHOWN")),
    "program_written": _running(_by_program(_WRITTEN, "SHOWN")),
}
