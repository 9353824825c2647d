"""The cost of periodic exports of metrics: their number, and the CPU time of each.

The cost of an export does not depend on the number of requests since the last one.  Its
share of the CPU time of a request therefore holds for the measured request rate, and
is larger for lower rates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keylag_bench.intervals import Interval, Totals, bootstrap_interval
from keylag_bench.raw_results import Row
from keylag_bench.schedule import Plan

_NUMBER, _CPU = "exports", "CPU seconds"


@dataclass(frozen=True)
class ExportCosts:
    """The exports of one arm in one workload."""

    number: int
    seconds: float
    """Wall seconds of work of the arm."""
    requests: int
    cpu_ms: Interval
    """CPU milliseconds of one export, in its own thread."""

    @property
    def requests_per_second(self) -> float:
        """The request rate of the arm while it worked."""
        return self.requests / self.seconds

    def as_json(self) -> dict[str, Any]:
        """Return the value for overhead.json."""
        return {
            "number": self.number,
            "seconds": self.seconds,
            "requests_per_second": self.requests_per_second,
            "cpu_ms": self.cpu_ms.as_list(),
        }

    def as_text(self) -> str:
        """Return one line of text."""
        return (
            f"one export takes {self.cpu_ms.as_text()} ms of CPU time; {self.number} "
            f"exports in {self.seconds:.0f} s of work, at "
            f"{self.requests_per_second:.0f} requests/s"
        )


def export_costs(arm: str, rows: Sequence[Row], plan: Plan) -> ExportCosts | None:
    """Return the exports of an arm in the complete rounds; None without exports."""
    complete = _complete_rounds(rows, plan)
    own = [
        row for row in rows if row.arm == arm and (row.restart, row.round) in complete
    ]
    number = sum(row.exports for row in own)
    if not number:
        return None
    return ExportCosts(
        number=number,
        seconds=sum(row.wall_seconds for row in own),
        requests=sum(row.requests for row in own),
        cpu_ms=_cpu_ms(own, plan.seed),
    )


def _complete_rounds(rows: Sequence[Row], plan: Plan) -> set[tuple[int, int]]:
    arms: dict[tuple[int, int], set[str]] = {}
    for row in rows:
        arms.setdefault((row.restart, row.round), set()).add(row.arm)
    return {key for key, found in arms.items() if set(plan.arms) <= found}


def _cpu_ms(rows: Sequence[Row], seed: int) -> Interval:
    # Only restarts with an export have a cost per export.
    found: dict[int, dict[str, float]] = {}
    for row in rows:
        sums = found.setdefault(row.restart, {_NUMBER: 0.0, _CPU: 0.0})
        sums[_NUMBER] += row.exports
        sums[_CPU] += row.export_cpu_seconds
    restarts = [[sums] for sums in found.values() if sums[_NUMBER]]
    return bootstrap_interval(_cpu_ms_per_export, restarts, seed)


def _cpu_ms_per_export(totals: Totals) -> Any:
    return 1000 * totals[_CPU] / totals[_NUMBER]
