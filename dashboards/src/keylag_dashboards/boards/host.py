"""Dashboard *Host*: what a machine and its programs do beside the token calls."""

from typing import Final

from keylag_dashboards.categories import TITLES
from keylag_dashboards.config import WARNING
from keylag_dashboards.model import Board, Column, Panel, Row
from keylag_dashboards.queries.host import (
    PRESSURES,
    QUERIES,
    REQUESTS,
    SHOWN_PROGRAMS,
)

_PROGRAMS: Final = "host: CPU time by program"
_UNSEEN: Final = "the exporter may not see the transfers of other users' programs"
_OWN_ONLY: Final = "Without root, the exporter sees its own user's programs only."

BESIDE: Final = Row(
    "Token calls, and who waits on the host",
    (
        Panel(
            "Time per call, by category",
            "If it grows together with a pressure, the host is the cause: look for the"
            " program that uses the same.",
            "s",
            "stacked",
            {title: f"category_{name}" for name, title in TITLES.items()},
            explained_by=("tokens: Time per call, by category", _PROGRAMS),
        ),
        Panel(
            "Pressure",
            "PSI `some` of CPU, disk and memory, and `full` as all tasks, as a share of"
            " the time. Of the host with most of it. A host that has enough is near"
            " zero, except for the CPU under load.",
            "percentunit",
            "lines",
            PRESSURES,
            maximum=1,
            empty_reason="Linux has it since 4.20, unless booted with psi=0",
            explained_by=(_PROGRAMS, "host: Time of a request"),
        ),
    ),
    source="host",
)

CPU: Final = Row(
    "CPU",
    (
        Panel(
            "CPU time by mode",
            "Share of all CPUs. steal: the hypervisor gives them to other machines."
            " iowait: idle, while a task waits for the disk. Near 100 %: all calls"
            " take longer.",
            "percentunit",
            "stacked",
            {"{{mode}}": "modes"},
            maximum=1,
            explained_by=(_PROGRAMS, "workers: CPU share of a worker"),
        ),
        Panel(
            "Stopped by a CPU limit",
            "Time that a cgroup was stopped, per second. Raise its limit, or start"
            " fewer workers.",
            "percentunit",
            "lines",
            {"{{id}}": "stopped"},
            width=6,
            thresholds={0.01: WARNING},
            empty_reason="no cgroup has a CPU limit",
        ),
        Panel(
            "Full listen queues",
            "Connections that found the queue of a socket full. Add workers, or raise"
            " the backlog.",
            "ops",
            "lines",
            {"overflows": "overflows"},
            width=6,
            thresholds={0.001: WARNING},
            explained_by=("workers: Waiting connections",),
        ),
    ),
    source="host",
)

PROGRAMS: Final = Row(
    "Programs",
    (
        Panel(
            "CPU time by program",
            f"CPUs in use, by the {SHOWN_PROGRAMS} programs with most. A program that"
            " grows while calls get slower: give it a lower CPU weight, a limit or"
            " another machine.",
            "short",
            "stacked",
            {"{{groupname}}": "programs_cpu"},
            width=24,
            decimals=2,
            explained_by=("host: CPU time by mode",),
        ),
        Panel(
            "Written by program",
            "Each commit of Keystone's database waits for the disk, after what others"
            " write. Limit their writes, or give the database a disk of its own."
            f" {_OWN_ONLY}",
            "Bps",
            "lines",
            {"{{groupname}}": "programs_written"},
            empty_reason=_UNSEEN,
            explained_by=("host: Time of a request", "sql: Time in SQL per call"),
        ),
        Panel(
            "Read by program",
            "Only what came from a disk. The database reads when its buffer pool is too"
            f" small. {_OWN_ONLY}",
            "Bps",
            "lines",
            {"{{groupname}}": "programs_read"},
            empty_reason=_UNSEEN,
            explained_by=("host: Time of a request",),
        ),
        Panel(
            "Programs that run",
            "Means over the time shown; memory is that of now.",
            "short",
            "table",
            {
                "CPUs": "program_cpu",
                "memory": "program_memory",
                "read": "program_read",
                "written": "program_written",
                "processes": "program_number",
            },
            width=24,
            height=10,
            columns={
                "program": Column(),
                "processes": Column("locale", 100, 0),
                "CPUs": Column("short", 90, 2),
                "memory": Column("bytes", 110),
                "read": Column("Bps", 110),
                "written": Column("Bps", 110),
            },
            empty_reason=_UNSEEN,
            empty_legends=("read", "written"),
        ),
    ),
    source="processes",
)

DISK: Final = Row(
    "Disk",
    (
        Panel(
            "Time of a request",
            "With its wait in the queue, of the slowest disk. A commit waits for a"
            " disk cache flush. Far above what the disk takes alone: it is shared, or"
            " full.",
            "s",
            "lines",
            {name: f"{name}_seconds" for name in REQUESTS},
            width=8,
            empty_reason="a disk without requests has no time; kernels before 5.5 count"
            " no flushes",
            explained_by=("host: Written by program",),
        ),
        Panel(
            "Requests in the queue",
            "Mean number that wait or are served. More than the disk serves at once:"
            " requests wait.",
            "short",
            "lines",
            {"{{device}}": "queue"},
            width=8,
            decimals=1,
            explained_by=("host: Written by program", "host: Read by program"),
        ),
        Panel(
            "Busy share of a disk",
            "Share of the time with any request. A disk that serves several at once may"
            " do more at 100 %.",
            "percentunit",
            "lines",
            {"{{device}}": "busy"},
            width=8,
            maximum=1,
            explained_by=("host: Requests in the queue",),
        ),
    ),
    source="host",
)

MEMORY: Final = Row(
    "Memory",
    (
        Panel(
            "Available memory",
            "Share that programs can get without swapping, of the host with least."
            " Below 5 %: the kernel drops what it has read from disks.",
            "percentunit",
            "lines",
            {"available": "available"},
            maximum=1,
            explained_by=("host: Programs that run",),
        ),
        Panel(
            "Pages from disk",
            "Page faults that read from a disk, and pages from and to swap. A worker"
            " that waits for a page serves nobody.",
            "ops",
            "lines",
            {
                "faults": "faults",
                "swapped in": "swapped_in",
                "swapped out": "swapped_out",
            },
            explained_by=("host: Programs that run",),
        ),
    ),
    source="host",
)

BOARD: Final = Board(
    name="host",
    title="Keylag / Host",
    purpose="CPU, pressure, disks and memory of hosts, and which program uses them.",
    queries=QUERIES,
    variables=("cluster", "region", "job", "host", "method", "machine"),
    rows=(BESIDE, CPU, PROGRAMS, DISK, MEMORY),
)
