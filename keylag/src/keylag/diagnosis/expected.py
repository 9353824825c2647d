"""What a healthy Keystone would do: from a baseline window, or from shipped figures.

Counts are the same on all machines.  Times are not: the shipped ones are scaled by the
speed of phases that only compute, in the same window.
"""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from keylag.diagnosis.facts import Calls, Facts, Kind, time_in
from keylag.phases import Cell

SHIPPED: Final = Path(__file__).with_name("healthy.json")
OTHER_CLOUD: Final = 3.0
SAME_CLOUD: Final = 2.0
"""How many times as long a healthy call may take: clouds differ in their catalogs,
roles and load, and a cloud differs less from itself at another time."""
COMPUTING: Final = ("schema", "policy", "timestamps", "wsgi")
"""Phases that use a CPU and nothing else, and that no cause touches alone."""


@dataclass(frozen=True)
class Healthy:
    """A kind of token call of a healthy Keystone with a warm cache; per call."""

    statements: float
    round_trips: float
    cells: Mapping[Cell, float]
    """Seconds by phase and operation."""
    quantiles: Mapping[float, float] = field(default_factory=dict)
    """Seconds by share of the calls: 0.5 and 0.95, if they are known."""
    number: float = math.inf
    """How many calls these figures are of."""


@dataclass(frozen=True)
class Expected:
    """Figures of a healthy Keystone by kind of call; `slowness` scales their times."""

    by_kind: Mapping[Kind, Healthy]
    slowness: float
    login_rate: float | None = None
    """Log-ins per second of the baseline; None without any."""
    spread: float = OTHER_CLOUD
    """How many times as long as these figures a healthy call may take."""

    @classmethod
    def shipped(cls, facts: Facts) -> "Expected":
        """Return the shipped figures, scaled to the machine of the facts."""
        figures = load_shipped()
        return cls(figures, machine_slowness(facts, figures))

    @classmethod
    def of(cls, baseline: Facts) -> "Expected":
        """Return the figures of a baseline; kinds that it lacks are unknown."""
        figures = {
            calls.kind: Healthy(
                calls.statements,
                calls.round_trips,
                calls.cells,
                calls.quantiles,
                calls.per_second * baseline.window.seconds,
            )
            for calls in baseline.served
        }
        logins = (one for one in baseline.served if one.kind[0] == "POST")
        rate = sum(one.per_second for one in logins)
        return cls(figures, 1.0, login_rate=rate or None, spread=SAME_CLOUD)

    def statements(self, calls: Calls) -> float | None:
        """Return the statements of a call with a warm cache; None if unknown."""
        found = self.by_kind.get(calls.kind)
        return found.statements if found else None

    def round_trips(self, calls: Calls) -> float | None:
        """Return the cache calls of a call; None if unknown."""
        found = self.by_kind.get(calls.kind)
        return found.round_trips if found else None

    def seconds(
        self, calls: Calls, phases: Sequence[str], operations: Sequence[str]
    ) -> float | None:
        """Return the expected time in phases and operations; None if unknown."""
        found = self.by_kind.get(calls.kind)
        if found is None:
            return None
        return time_in(found.cells, phases, operations) * self.slowness

    def number(self, calls: Calls) -> float:
        """Return of how many calls the figures are; 0 if unknown."""
        found = self.by_kind.get(calls.kind)
        return found.number if found else 0.0

    def quantile(self, calls: Calls, share: float) -> float | None:
        """Return an expected quantile of the wall time; None if unknown."""
        found = self.by_kind.get(calls.kind)
        if found is None or share not in found.quantiles:
            return None
        return found.quantiles[share] * self.slowness


def machine_slowness(facts: Facts, figures: Mapping[Kind, Healthy]) -> float:
    """Return how much longer computing takes than in the figures; 1 if unknown."""
    ratios = [
        calls.spent([phase]) / expected
        for calls in facts.served
        for phase in COMPUTING
        if (healthy := figures.get(calls.kind))
        and (expected := time_in(healthy.cells, [phase], ()))
        and calls.spent([phase])
    ]
    return statistics.median(ratios) if ratios else 1.0


def load_shipped() -> dict[Kind, Healthy]:
    """Return the shipped figures by kind."""
    content = json.loads(SHIPPED.read_text(encoding="utf-8"))
    return {
        (one["method"], one["auth_method"]): Healthy(
            one["statements"],
            one["round_trips"],
            {
                (phase, operation): seconds
                for phase, operations in one["cells"].items()
                for operation, seconds in operations.items()
            },
            {float(share): value for share, value in one["quantiles"].items()},
        )
        for one in content["calls"]
    }
