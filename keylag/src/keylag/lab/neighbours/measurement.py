"""Measures token calls while neighbours share the machine, and what it does then."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from keylag.breakdown import Call, compute_breakdown
from keylag.experiment.interval import Interval
from keylag.jtl import Sample
from keylag.lab import intervals
from keylag.lab.iproute import LabError
from keylag.lab.load import KEYLAG, LabLoad, read_samples
from keylag.lab.neighbours.host import HostFigures, HostRecorder
from keylag.lab.neighbours.lab import TENANTS, Neighbours
from keylag.lab.neighbours.options import NeighbourOptions
from keylag.lab.neighbours.window import Window
from keylag.lab.neighbours.ycsb import TenantFigures

PLAN: Final = "token-mixed"
SHARES: Final = {"issue": 35, "validate": 35, "revoke": 30, "revoked": 0}
"""Of the kinds of calls, in per cent; none with a token that is revoked already.

Only a revocation waits for the disk.
"""
CLIENTS: Final = 2
"""One for each process of Keystone."""


@dataclass(frozen=True)
class Calls:
    """The calls of a kind."""

    count: int
    """Of those that succeeded."""
    failed: int
    p50_seconds: Interval
    """At the client, with its interval at 95 %; too few calls have none."""
    p95_seconds: Interval
    categories: Mapping[str, Mapping[str, float]]
    """By category: `mean`, `p50` and `p95` of its seconds in a call."""

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON, which has null for what is unknown."""
        return {
            "count": self.count,
            "failed": self.failed,
            "p50_seconds": intervals.as_json(self.p50_seconds),
            "p95_seconds": intervals.as_json(self.p95_seconds),
            "categories": self.categories,
        }


@dataclass(frozen=True)
class Measured:
    """Keystone, its neighbours and the machine in the same time."""

    options: NeighbourOptions
    levers: Sequence[str]
    """Those that were on."""
    seconds: float
    """From the first call to the end of the last one."""
    calls: Mapping[str, Calls]
    """By their labels in the load plan, such as `POST /v3/auth/tokens password`."""
    tenants: Sequence[TenantFigures]
    host: HostFigures

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "options": asdict(self.options),
            "levers": list(self.levers),
            "seconds": self.seconds,
            "calls": {label: one.as_json() for label, one in self.calls.items()},
            "tenants": [one.as_json() for one in self.tenants],
            "host": self.host.as_json(),
        }


def measure(lab: Neighbours, seconds: int, out: Path) -> Measured:
    """Send token calls for some seconds, with no revocation event at first.

    `out` is a new folder for the samples.  Raises LabError or pymysql.MySQLError.
    """
    options = lab.options()
    tenants = TENANTS[: options.tenants]
    for number in tenants:
        lab.database(number).require_pids()
    lab.delete_events()
    shares = {f"{name}_percent": share for name, share in SHARES.items()}
    load = LabLoad(PLAN, seconds, CLIENTS, shares)
    with HostRecorder() as recorder:
        load.send([KEYLAG], out, [f"--state={lab.stack}"])
    samples = [one for one in read_samples(out) if not one.is_setup]
    window = window_of(samples)
    switches = lab.switches()
    return Measured(
        options,
        list(switches.record),
        window.seconds,
        summarise(samples),
        [lab.client(number).figures(window) for number in tenants],
        recorder.figures(window, switches.disk.name),
    )


def window_of(samples: Sequence[Sample]) -> Window:
    """Return the time of all calls; raises LabError without any."""
    if not samples:
        message = "The load sent no calls. `keylag status` says what does not run."
        raise LabError(message)
    return Window(
        min(one.start_seconds for one in samples),
        max(one.start_seconds + one.elapsed_seconds for one in samples),
    )


def summarise(samples: Sequence[Sample]) -> dict[str, Calls]:
    """Return the figures of calls by their labels."""
    found = compute_breakdown(samples)["calls"]
    return {_label(one): _calls(samples, _label(one), one) for one in found}


def _label(call: Call) -> str:
    words = (call["method"], call["route"], call["auth_method"])
    return " ".join(filter(None, words))


def _calls(samples: Sequence[Sample], label: str, call: Call) -> Calls:
    seconds = [
        one.elapsed_seconds for one in samples if one.label == label and one.success
    ]
    return Calls(
        len(seconds),
        call["errors"],
        intervals.quantile(seconds, 0.5),
        intervals.quantile(seconds, 0.95),
        call["categories"],
    )
