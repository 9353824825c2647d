"""A drill: plant a fault, check that calls became slower, and say so."""

from dataclasses import dataclass

from keylag.faults import planting
from keylag.faults.impact import Impact
from keylag.faults.model import SERVICE, Fault
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
        before = self._measure("before")
        self.start()
        return Impact(before, self._measure("after"))

    def _measure(self, when: str) -> Measurement:
        with show_step(self.site.console, f"Measuring calls {when} the fault"):
            return measure(self.site, self.fault)


def measure(site: Site, fault: Fault) -> Measurement:
    """Measure the calls that show a fault."""
    probe = Probe(StackInfo(site.folder))
    return probe.measure(fault.clients, service=SERVICE in fault.slows)
