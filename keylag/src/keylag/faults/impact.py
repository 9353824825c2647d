"""Whether token calls became slower."""

from dataclasses import dataclass
from typing import Final

from keylag.faults.probe import Latency, Measurement

SHARE: Final = 0.2
"""Growth of a percentile that is no noise, as a share of it before ..."""
SECONDS: Final = 0.002
"""... and in seconds."""
FAILED_SHARE: Final = 0.05
"""Of the calls: more of them are the p95, however soon they fail."""


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
        new > max(old * (1 + SHARE), old + SECONDS)
        for old, new in ((before.p50, after.p50), (before.p95, after.p95))
    )
    return grew or _failed_share(before) <= FAILED_SHARE < _failed_share(after)


def _failed_share(latency: Latency) -> float:
    return latency.errors / max(1, latency.calls)
