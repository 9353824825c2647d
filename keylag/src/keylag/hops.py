"""What several probes of a URL say about the hops on the way to it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from keylag.breakdown import quantile
from keylag.report.formatting import format_ms, format_percent
from keylag_exporters.http_probe import PHASES, ProbeResult

HOP_NAMES: Final[Mapping[str, str]] = {
    "resolve": "DNS",
    "connect": "connect",
    "tls": "TLS",
    "processing": "wait",
    "transfer": "transfer",
    "status": "status",
}
"""Display names of the phases of a probe."""
MEANINGS: Final[Mapping[str, str]] = {
    "resolve": "The resolver of this host is slow or far: see its /etc/resolv.conf.",
    "connect": "The network to the host or load balancer is long or loses packets, or "
    "its listen queue is full.",
    "tls": "The handshake takes one or two round trips and a signature by the server: "
    "the host is far, or its CPU is busy.",
    "processing": "Keystone works on the call, or the call waits in a queue before "
    "Keystone: `keylag explain` tells the two apart.",
    "transfer": "The response comes slowly: the network is narrow or loses packets, or "
    "a proxy holds it back.",
}
"""What it means if most of the time is in a phase."""
NO_SUCCESS: Final = "No probe succeeded."
DECIMALS: Final = 2


@dataclass(frozen=True)
class Quantiles:
    """Of the durations of one phase, in seconds."""

    p50: float
    p95: float
    max: float


@dataclass(frozen=True)
class Hops:
    """The durations of all phases that a probe began, and the failures."""

    probes: int
    phases: Mapping[str, Quantiles]
    total: Quantiles
    failures: Mapping[tuple[str, str], int]
    """Number of failures by phase and reason."""

    @property
    def slowest(self) -> str:
        """The phase with the greatest median."""
        return max(self.phases, key=lambda phase: self.phases[phase].p50)

    @property
    def conclusion(self) -> str:
        """The phase that costs most, and what that means."""
        if sum(self.failures.values()) == self.probes:
            return NO_SUCCESS
        seconds, total = self.phases[self.slowest].p50, self.total.p50
        name = HOP_NAMES[self.slowest]
        return (
            f"{name[0].upper()}{name[1:]} costs most: {format_ms(seconds, DECIMALS)} "
            f"of {format_ms(total, DECIMALS)} ms ({format_percent(seconds / total)}). "
            f"{MEANINGS[self.slowest]}"
        )


def summarize(results: Sequence[ProbeResult]) -> Hops:
    """Return the quantiles of at least one probe; failed ones count, too."""
    seconds = {
        phase: [one.seconds[phase] for one in results if phase in one.seconds]
        for phase in PHASES
    }
    return Hops(
        len(results),
        {phase: _quantiles(values) for phase, values in seconds.items() if values},
        _quantiles([one.total_seconds for one in results]),
        Counter((one.failed_phase, one.reason) for one in results if one.failed_phase),
    )


def _quantiles(seconds: Sequence[float]) -> Quantiles:
    ordered = sorted(seconds)
    return Quantiles(quantile(ordered, 0.5), quantile(ordered, 0.95), ordered[-1])
