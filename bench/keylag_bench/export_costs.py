"""What periodic exports of metrics cost: how many there were, and the CPU of each.

An export costs the same however many requests come between two of them, so its share
of a request's CPU holds at the rate of requests that was measured, and grows as that
falls.
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
    """The exports of one arm on one workload."""

    number: int
    seconds: float
    """Of work, in which they were made."""
    requests: int
    cpu_ms: Interval
    """CPU time of one export in its own thread."""

    @property
    def requests_per_second(self) -> float:
        """What the arm served while it worked."""
        return self.requests / self.seconds

    def as_json(self) -> dict[str, Any]:
        """Return it as overhead.json has it."""
        return {
            "number": self.number,
            "seconds": self.seconds,
            "requests_per_second": self.requests_per_second,
            "cpu_ms": self.cpu_ms.as_list(),
        }

    def as_text(self) -> str:
        """Say it in a line."""
        return (
            f"one export takes {self.cpu_ms.as_text()} ms of CPU; {self.number} were "
            f"made in {self.seconds:.0f} s of work, at "
            f"{self.requests_per_second:.0f} requests/s"
        )


def export_costs(arm: str, rows: Sequence[Row], plan: Plan) -> ExportCosts | None:
    """Return the exports of an arm in one workload's whole rounds; None without any."""
    whole = _complete_rounds(rows, plan)
    own = [row for row in rows if row.arm == arm and (row.restart, row.round) in whole]
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
    """Return the restarts and rounds that have all arms."""
    arms: dict[tuple[int, int], set[str]] = {}
    for row in rows:
        arms.setdefault((row.restart, row.round), set()).add(row.arm)
    return {place for place, found in arms.items() if set(plan.arms) <= found}


def _cpu_ms(rows: Sequence[Row], seed: int) -> Interval:
    """Return milliseconds an export, over the restarts that had one."""
    found: dict[int, dict[str, float]] = {}
    for row in rows:
        sums = found.setdefault(row.restart, {_NUMBER: 0.0, _CPU: 0.0})
        sums[_NUMBER] += row.exports
        sums[_CPU] += row.export_cpu_seconds
    restarts = [[sums] for sums in found.values() if sums[_NUMBER]]
    return bootstrap_interval(_cpu_ms_per_export, restarts, seed)


def _cpu_ms_per_export(totals: Totals) -> Any:
    return 1000 * totals[_CPU] / totals[_NUMBER]
