"""Find what on this machine would widen the intervals of an experiment."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from keylag.experiment.load_monitor import MIB, Disturbance, swapped_bytes

SAMPLE_SECONDS: Final = 5.0
MAX_BUSY: Final = 0.2
"""Share of the processors' time that other programs may use."""
MAX_WAITING: Final = 0.2
"""Share of the time in which one of their processes may wait for a processor."""
MAX_SWAPPED_MIB: Final = 1.0
MAX_STOLEN: Final = 0.05
"""Share of the time that a hypervisor may give to other virtual machines."""
MAX_FREQUENCY_CHANGE: Final = 0.1
"""Of the processors' frequency under load, as a share of the higher one."""
MICROSECONDS: Final = 1e-6

PRESSURE: Final = Path("/proc/pressure/cpu")


def measure_disturbance(usable: list[int]) -> dict[str, float]:
    """Return what other programs do on the processors `usable` before the start."""
    waited, swapped = _seconds_waited(), swapped_bytes()
    busy = psutil.cpu_percent(SAMPLE_SECONDS, percpu=True)
    return {
        "busy_before": round(sum(busy[one] for one in usable) / 100 / len(usable), 3),
        "waiting_before": round((_seconds_waited() - waited) / SAMPLE_SECONDS, 3),
        "swapped_mib_before": round((swapped_bytes() - swapped) / MIB, 3),
    }


def _seconds_waited() -> float:
    # Some kernels do not count it.
    try:
        some = PRESSURE.read_text().splitlines()[0]
    except OSError:
        return 0.0
    return int(some.rpartition("total=")[2]) * MICROSECONDS


def find_obstacles(environment: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences about what `measure_disturbance` found."""
    if (busy := environment["busy_before"]) > MAX_BUSY:
        yield (
            f"Before the start, other programs used {busy:.0%} of the processors' "
            "time. Their load widens every interval."
        )
    if (waiting := environment.get("waiting_before", 0)) > MAX_WAITING:
        yield (
            f"Before the start, processes waited for a CPU {waiting:.0%} of the time. "
            "Stop other programs, or use more CPUs."
        )
    if (swapped := environment.get("swapped_mib_before", 0)) > MAX_SWAPPED_MIB:
        yield (
            f"Before the start, the machine swapped {swapped:.0f} MiB in "
            f"{SAMPLE_SECONDS:.0f} s. Free memory."
        )


def find_obstacles_under_load(found: Disturbance) -> Iterator[str]:
    """Yield sentences about what a LoadMonitor found."""
    if (found.other_programs or 0) > MAX_BUSY:
        yield (
            f"Under load, other programs used {found.other_programs:.0%} of the "
            "processors' time. Stop them."
        )
    if found.stolen > MAX_STOLEN:
        yield (
            f"Under load, the hypervisor gave {found.stolen:.0%} of the processors' "
            "time to other virtual machines. Use a machine with processors of its own."
        )
    if found.swapped_mib > MAX_SWAPPED_MIB:
        yield (
            f"Under load, the machine swapped {found.swapped_mib:.0f} MiB in "
            f"{found.seconds:.0f} s. Free memory."
        )
    low, high = found.ghz or (1.0, 1.0)
    if high - low > MAX_FREQUENCY_CHANGE * high:
        yield (
            f"Under load, the processors' frequency changed from {low:.1f} to "
            f"{high:.1f} GHz. Set the governor `performance`, and switch off "
            "turbo frequencies."
        )


def find_disturbed_rounds(disturbances: Sequence[Disturbance]) -> Iterator[str]:
    """Yield a sentence if something disturbed a round, with the first one it did."""
    found = [
        (number, obstacles)
        for number, one in enumerate(disturbances, start=1)
        if (obstacles := list(find_obstacles_under_load(one)))
    ]
    if found:
        number, obstacles = found[0]
        yield (
            f"The machine was disturbed in {len(found)} of {len(disturbances)} rounds, "
            f"first in round {number}. {' '.join(obstacles)}"
        )
