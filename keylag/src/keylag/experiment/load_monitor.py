"""Measure what disturbs the load of an experiment while it runs."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final, NamedTuple

import numpy as np
import psutil

from keylag import processes
from keylag.beside import beside

SAMPLE_SECONDS: Final = 0.5
CPU_FOLDER: Final = Path("/sys/devices/system/cpu")
FREQUENCY_FILE: Final = "cpufreq/scaling_cur_freq"
KHZ_PER_GHZ: Final = 1e6
MIB: Final = 2**20
IDLE_FIELDS: Final = ("idle", "iowait", "steal", "guest", "guest_nice")
"""Of psutil's processor times; a guest's time is also in another field."""
ProcessKey = tuple[int, float]
"""Process id and time of creation."""


@dataclass(frozen=True)
class Disturbance:
    """What happened to the usable processors in `seconds` under load."""

    seconds: float = 0.0
    other_programs: float | None = None
    """Share of the processors' time that programs outside the experiment used.

    None if Keylag did not start the Keystones, whose processes it does not know.
    """
    stolen: float = 0.0
    """Share of the time that the hypervisor gave to other virtual machines."""
    swapped_mib: float = 0.0
    ghz: tuple[float, float] | None = None
    """10th and 90th percentile of the fastest processor's; None if unknown."""


def combine(disturbances: Sequence[Disturbance]) -> Disturbance:
    """Return what happened in the time of all; of frequencies, the widest range."""
    seconds = sum(one.seconds for one in disturbances)
    if not seconds:
        return Disturbance()

    def mean(name: str) -> float:
        total = sum(getattr(one, name) * one.seconds for one in disturbances)
        return float(round(total / seconds, 3))

    is_known = all(one.other_programs is not None for one in disturbances)
    frequencies = [one.ghz for one in disturbances if one.ghz]
    return Disturbance(
        seconds=round(seconds, 1),
        other_programs=mean("other_programs") if is_known else None,
        stolen=mean("stolen"),
        swapped_mib=round(sum(one.swapped_mib for one in disturbances), 1),
        ghz=(
            (min(low for low, _ in frequencies), max(high for _, high in frequencies))
            if frequencies
            else None
        ),
    )


class _Counters(NamedTuple):
    # Seconds of all usable processors, except the first and the last.
    clock: float
    busy: float
    stolen: float
    swapped_bytes: int
    own: Mapping[ProcessKey, float]


@dataclass
class LoadMonitor:
    """Measures what happens while `watch` is active."""

    stacks: Path | None
    """The folder of the experiment's stacks; None if Keylag did not start them."""
    usable: list[int]
    """The numbers of the processors that the experiment may use."""
    latest: Disturbance = field(default_factory=Disturbance, init=False)
    """What happened in the last block."""
    _ghz: list[float] = field(default_factory=list)

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Measure until the end of the block."""
        self._ghz.clear()
        before = self._read()
        with ExitStack() as stack:
            if files := self._frequency_files():
                sample = partial(self._sample_frequency, files)
                stack.enter_context(beside(sample))
            yield
        self.latest = self._between(before, self._read())

    def _frequencies(self) -> tuple[float, float] | None:
        if not self._ghz:
            return None
        low, high = np.percentile(self._ghz, [10, 90])
        return round(float(low), 2), round(float(high), 2)

    def _between(self, before: _Counters, after: _Counters) -> Disturbance:
        seconds = after.clock - before.clock
        available = seconds * len(self.usable)
        own = sum(
            used - before.own.get(process, 0.0) for process, used in after.own.items()
        )
        others = max(0.0, after.busy - before.busy - own) / available
        return Disturbance(
            seconds=round(seconds, 1),
            other_programs=round(others, 3) if self.stacks else None,
            stolen=round((after.stolen - before.stolen) / available, 3),
            swapped_mib=round((after.swapped_bytes - before.swapped_bytes) / MIB, 1),
            ghz=self._frequencies(),
        )

    def _read(self) -> _Counters:
        times = psutil.cpu_times(percpu=True)
        used = [times[number]._asdict() for number in self.usable]
        return _Counters(
            time.monotonic(),
            sum(sum(one.values()) - _sum(one, IDLE_FIELDS) for one in used),
            sum(_sum(one, ("steal",)) for one in used),
            swapped_bytes(),
            self._own_seconds(),
        )

    def _own_seconds(self) -> dict[ProcessKey, float]:
        # JMeter is a child of this process, whose time counts when it has ended.
        found = processes.find_processes(below=self.stacks) if self.stacks else []
        seconds = {}
        for process in [psutil.Process(), *(one.process for one in found)]:
            with suppress(psutil.Error):
                key = (process.pid, process.create_time())
                seconds[key] = sum(process.cpu_times()[:4])
        return seconds

    def _frequency_files(self) -> list[Path]:
        files = [CPU_FOLDER / f"cpu{n}" / FREQUENCY_FILE for n in self.usable]
        return [file for file in files if file.exists()]

    def _sample_frequency(self, files: list[Path], ended: Event) -> None:
        while not ended.wait(SAMPLE_SECONDS):
            with suppress(OSError, ValueError):
                khz = max(int(file.read_text()) for file in files)
                self._ghz.append(khz / KHZ_PER_GHZ)


def swapped_bytes() -> int:
    """Return what the machine has read from and written to its swap space."""
    memory = psutil.swap_memory()
    return int(memory.sin + memory.sout)


def _sum(times: Mapping[str, float], names: tuple[str, ...]) -> float:
    return sum(times.get(name, 0.0) for name in names)
