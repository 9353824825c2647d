"""Whether token calls became slower."""

from dataclasses import dataclass
from typing import Final

from keylag.faults.probe import Latency, Measurement

MIN_GROWTH_SHARE: Final = 0.2
MIN_GROWTH_SECONDS: Final = 0.002
"""A percentile grew if it exceeds what it was by both; less may be noise."""
FAILED_SHARE: Final = 0.05
"""If a larger share of the calls fails, the p95 is a failed call."""


@dataclass(frozen=True)
class Impact:
    """Calls before and after a fault was planted."""

    before: Measurement
    after: Measurement

    @property
    def slower(self) -> list[str]:
        """The kinds of calls whose p50 or p95 grew; failed ones count as slow."""
        return [
            kind
            for kind, latency in self.after.items()
            if kind in self.before and _is_slower(self.before[kind], latency)
        ]


def _is_slower(before: Latency, after: Latency) -> bool:
    grew = any(
        new > max(old * (1 + MIN_GROWTH_SHARE), old + MIN_GROWTH_SECONDS)
        for old, new in ((before.p50, after.p50), (before.p95, after.p95))
    )
    return grew or _failed_share(before) <= FAILED_SHARE < _failed_share(after)


def _failed_share(latency: Latency) -> float:
    return latency.errors / max(1, latency.calls)
