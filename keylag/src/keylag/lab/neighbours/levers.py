"""Settings of the machine that may help Keystone, its neighbours, or both.

Each row says what it sets. `switches` sets it and takes it back.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from keylag.control_groups import Setting, Versions
from keylag.faults.changes.limited import PERIOD_US

MEBIBYTE: Final = 1024**2


class KernelFile(NamedTuple):
    """A setting of the whole machine; `{disk}` is the disk below /sys."""

    path: str
    text: str


class Request(NamedTuple):
    """What the kernel does once when a file of its own is written to."""

    path: str
    text: str


class Group(NamedTuple):
    """A setting of the control group of the neighbours' databases."""

    versions: Versions


class IoClass(NamedTuple):
    """The class of the neighbours' requests to disk, as `ionice -c` takes it."""

    number: int


Change = KernelFile | Request | Group | IoClass


class Lever(NamedTuple):
    """A setting, or several that belong together."""

    summary: str
    changes: tuple[Change, ...]


DEADLINE: Final = KernelFile("{disk}/queue/scheduler", "mq-deadline")
BFQ: Final = KernelFile("{disk}/queue/scheduler", "bfq")
MORE_STARVED: Final = KernelFile("{disk}/queue/iosched/writes_starved", "16")
LONGER_EXPIRY: Final = KernelFile("/proc/sys/vm/dirty_expire_centisecs", "12000")
STRICT: Final = KernelFile("{disk}/bdi/strict_limit", "1")
ONE_PERCENT: Final = KernelFile("{disk}/bdi/max_ratio", "1")
CPU_WEIGHT: Final = Group(
    (
        Setting("cpu", "cpu.shares", "102", "1024"),
        Setting("cpu", "cpu.weight", "10", "100"),
    )
)
CPU_LIMIT: Final = Group(
    (
        Setting("cpu", "cpu.cfs_quota_us", f"{PERIOD_US // 2}", "-1"),
        Setting("cpu", "cpu.max", f"{PERIOD_US // 2} {PERIOD_US}", f"max {PERIOD_US}"),
    )
)
IO_WEIGHT: Final = Group(
    (
        Setting("blkio", "blkio.bfq.weight", "10", "100"),
        Setting("io", "io.bfq.weight", "10", "100"),
    )
)
WRITE_LIMIT: Final = Group(
    (
        Setting(
            "blkio",
            "blkio.throttle.write_bps_device",
            f"{{disk}} {4 * MEBIBYTE}",
            "{disk} 0",
        ),
        Setting("io", "io.max", f"{{disk}} wbps={4 * MEBIBYTE}", "{disk} wbps=max"),
    )
)
MEMORY_LIMIT: Final = Group(
    (
        Setting("memory", "memory.limit_in_bytes", f"{256 * MEBIBYTE}", "-1"),
        Setting("memory", "memory.high", f"{256 * MEBIBYTE}", "max"),
    )
)
EMPTY_PAGE_CACHE: Final = Request("/proc/sys/vm/drop_caches", "1")
"""Pages that are in memory already stay those of the group that read them first."""

LEVERS: Final[Mapping[str, Lever]] = {
    "write-back-expiry": Lever(
        "Changed pages may stay in memory for 120 s before they are written.",
        (LONGER_EXPIRY,),
    ),
    "writes-starved": Lever(
        "mq-deadline serves 16 batches of reads before one of writes.",
        (DEADLINE, MORE_STARVED),
    ),
    "mq-deadline": Lever(
        "The scheduler mq-deadline as it is, to compare writes-starved with.",
        (DEADLINE,),
    ),
    "bfq": Lever("The scheduler BFQ gives each process its share of the disk.", (BFQ,)),
    "io-weight": Lever(
        "With BFQ, the databases' control group has a tenth of the usual weight.",
        (BFQ, IO_WEIGHT),
    ),
    "write-limit": Lever(
        "The databases' control group writes 4 MiB/s at most.", (WRITE_LIMIT,)
    ),
    "ionice": Lever(
        "The databases' requests wait until no other one does (class idle).",
        (IoClass(3),),
    ),
    "dirty-limit": Lever(
        "Changed pages of the disk are at most 1 % of what the machine allows.",
        (STRICT, ONE_PERCENT),
    ),
    "memory-limit": Lever(
        "The databases' control group reads into 256 MiB of memory at most.",
        (MEMORY_LIMIT, EMPTY_PAGE_CACHE),
    ),
    "cpu-weight": Lever(
        "The databases' control group has a tenth of the usual CPU weight.",
        (CPU_WEIGHT,),
    ),
    "cpu-limit": Lever(
        "The databases' control group has half a processor at most.", (CPU_LIMIT,)
    ),
}
"""By name; the first two are those of the 2014 paper (KVM, Cassandra, YCSB)."""
