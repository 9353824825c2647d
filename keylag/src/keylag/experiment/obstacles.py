"""Find what on this machine would widen the intervals of an experiment."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import psutil

SAMPLE_SECONDS: Final = 5.0
MAX_BUSY: Final = 0.2
"""Share of the processors' time that other programs may use."""
MAX_WAITING: Final = 0.2
"""Share of the time in which one of their processes may wait for a processor."""
MAX_SWAPPED_MIB: Final = 1.0
MICROSECONDS: Final = 1e-6
MIB: Final = 2**20

PRESSURE: Final = Path("/proc/pressure/cpu")


def measure_disturbance(usable: list[int]) -> dict[str, float]:
    """Return what other programs do on the processors `usable` before the start."""
    waited, swapped = _seconds_waited(), _bytes_swapped()
    busy = psutil.cpu_percent(SAMPLE_SECONDS, percpu=True)
    return {
        "busy_before": round(sum(busy[one] for one in usable) / 100 / len(usable), 3),
        "waiting_before": round((_seconds_waited() - waited) / SAMPLE_SECONDS, 3),
        "swapped_mib_before": round((_bytes_swapped() - swapped) / MIB, 3),
    }


def _seconds_waited() -> float:
    # Some kernels do not count it.
    try:
        some = PRESSURE.read_text().splitlines()[0]
    except OSError:
        return 0.0
    return int(some.rpartition("total=")[2]) * MICROSECONDS


def _bytes_swapped() -> int:
    memory = psutil.swap_memory()
    return int(memory.sin + memory.sout)


def find_obstacles(environment: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences about what `measure_disturbance` found."""
    if (busy := environment["busy_before"]) > MAX_BUSY:
        yield (
            f"Before the start, other programs used {busy:.0%} of the processors' "
            "time. Their load widens every interval."
        )
    if (waiting := environment.get("waiting_before", 0)) > MAX_WAITING:
        yield (
            f"Before the start, a process waited for a processor {waiting:.0%} of the "
            "time, and Keystone will, too."
        )
    if (swapped := environment.get("swapped_mib_before", 0)) > MAX_SWAPPED_MIB:
        yield (
            f"Before the start, the machine swapped {swapped:.0f} MiB in "
            f"{SAMPLE_SECONDS:.0f} s. Free memory."
        )
