"""A drill: plant a fault, check that calls became slower, and say so."""

from dataclasses import dataclass

from keylag.faults import planting
from keylag.faults.impact import Impact
from keylag.faults.model import Fault
from keylag.faults.probe import Measurement, Probe
from keylag.faults.site import Site
from keylag.stack_info import StackInfo
from keylag.steps import show_step


@dataclass(frozen=True)
class Drill:
    """A fault to plant in a stack."""

    site: Site
    fault: Fault
    strength: float

    def start(self) -> None:
        """Plant the fault; raises the errors of `planting.plant`."""
        with show_step(self.site.console, f"Planting {self.fault.title}"):
            planting.plant(self.site, self.fault, self.strength)

    def start_and_check(self) -> Impact:
        """Plant the fault; measure calls before and after."""
        planting.check(self.site, self.fault)
        probe = Probe(StackInfo(self.site.folder))
        before = self._measure(probe, "before")
        self.start()
        return Impact(before, self._measure(probe, "after"))

    def _measure(self, probe: Probe, when: str) -> Measurement:
        with show_step(self.site.console, f"Measuring calls {when} the fault"):
            return measure(probe, self.fault)


def measure(probe: Probe, fault: Fault) -> Measurement:
    """Measure the calls that show a fault."""
    return probe.measure(fault.clients, fault.slows)
