"""Watches how fast and how undisturbed the machine is while a page is measured."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Event
from typing import Final

import numpy as np

from keylag.beside import beside
from keylag.experiment.environment import usable_processors
from keylag.experiment.load_monitor import LoadMonitor
from keylag.experiment.obstacles import MAX_STOLEN

SAMPLE_SECONDS: Final = 10.0
COUNTED: Final = 500_000
"""Some 10 ms of processor time, so that the samples hardly disturb what is measured."""
MILLION: Final = 1_000_000
MOST_DISTURBED: Final = 0.05
"""Share of the samples of a steady machine in which the hypervisor takes too much."""
UNSTEADY: Final = (
    "**The machine was not steady**, so rows may differ because of it, and W2 may be "
    "named for good reason. Run it again on an idle machine."
)


@dataclass(frozen=True)
class Sample:
    """The machine in some seconds."""

    million_seconds: float
    """Processor time in which Python counts to a million."""
    stolen: float
    """Share of the processors' time that the hypervisor gave to other machines."""


@dataclass
class MachineWatch:
    """Samples the machine while `watch` is active."""

    samples: list[Sample] = field(default_factory=list)

    def watch(self) -> AbstractContextManager[None]:
        """Return a context that samples the machine until its end."""
        return beside(self._sample)

    def _sample(self, ended: Event) -> None:
        monitor = LoadMonitor(None, usable_processors())
        while not ended.is_set():
            with monitor.watch():
                ended.wait(SAMPLE_SECONDS)
            self.samples.append(Sample(_million_seconds(), monitor.latest.stolen))

    def sentence(self) -> str:
        """Return what the samples say, as a paragraph of a page."""
        return describe(list(self.samples))


def describe(samples: Sequence[Sample]) -> str:
    """Return how fast the machine was, and whether it was steady; empty if unknown."""
    if not samples:
        return ""
    low, mid, high = np.percentile(
        [one.million_seconds * 1000 for one in samples], [5, 50, 95]
    )
    stolen = [one.stolen for one in samples]
    disturbed = sum(one > MAX_STOLEN for one in stolen)
    told = (
        f"Meanwhile Python counted to a million in {mid:.0f} ms of processor time, "
        f"nine of ten times in {low:.0f} to {high:.0f} ms; other load makes it longer. "
        f"The hypervisor gave {np.mean(stolen):.1%} of the processors' time to other "
        f"machines, and more than {MAX_STOLEN:.0%} in {disturbed} of {len(samples)} "
        "samples."
    )
    is_steady = disturbed <= MOST_DISTURBED * len(samples)
    return told if is_steady else f"{told} {UNSTEADY}"


def _million_seconds() -> float:
    begun = time.thread_time()
    for _ in range(COUNTED):
        pass
    return (time.thread_time() - begun) * MILLION / COUNTED
