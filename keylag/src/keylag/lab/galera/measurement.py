"""Measures what token calls take over a link, and what a write sends over it."""

import json
import math
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.stats import bootstrap

from keylag.experiment.interval import Interval
from keylag.jtl import JtlError, Sample, read_samples
from keylag.lab.galera.lab import GaleraWan
from keylag.lab.galera.site import site_folder
from keylag.lab.iproute import LabError, command_in
from keylag.lab.link import Link
from keylag.lab.network import Host

PLAN: Final = "token-mixed"
SHARES: Final = {"issue": 25, "validate": 50, "revoke": 25, "revoked": 0}
"""Of the kinds of calls, in per cent; none with a token that is revoked already."""
SETTLE_SECONDS: Final = 3.0
"""After a change of the link, before anything is measured."""
IDLE_SECONDS: Final = 5.0
"""How long the traffic without calls is measured."""
LEAST_SAMPLES: Final = 5


@dataclass(frozen=True)
class Latencies:
    """What calls of a kind took at the client, in seconds."""

    count: int
    failed: int
    median: Interval
    """With its interval at 95 %, by the bootstrap; without one for few calls."""


@dataclass(frozen=True)
class Measured:
    """Token calls of one client at the first site, under one link."""

    link: Link
    calls: Mapping[str, Latencies]
    """By their labels in the load plan, such as `POST /v3/auth/tokens password`."""
    writes: int
    """Transactions that the cluster committed."""
    bytes_per_write: float
    """Over the link, in both directions, beyond what an idle cluster sends."""
    causes: tuple[str, ...]
    """What `keylag diagnose` named, the likeliest first."""

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON, which has null for an unknown limit."""
        return {
            "link": self.link.as_json(),
            "calls": {
                label: {
                    "count": one.count,
                    "failed": one.failed,
                    "median_seconds": [
                        value if math.isfinite(value) else None
                        for value in (one.median.low, one.median.mid, one.median.high)
                    ],
                }
                for label, one in self.calls.items()
            },
            "writes": self.writes,
            "bytes_per_write": self.bytes_per_write,
            "causes": list(self.causes),
        }


def measure(lab: GaleraWan, link: Link, seconds: int, out: Path) -> Measured:
    """Set the link, and send token calls for some seconds; raises LabError.

    `out` is a new folder for the samples.
    """
    lab.wan.change(link)
    time.sleep(SETTLE_SECONDS)
    idle_bytes_per_second = _sent_bytes(lab, IDLE_SECONDS) / IDLE_SECONDS
    begun, bytes_before = time.monotonic(), _total_bytes(lab)
    writes_before = _last_committed(lab)
    _send_calls(lab, seconds, out)
    writes = _last_committed(lab) - writes_before
    idle = idle_bytes_per_second * (time.monotonic() - begun)
    sent = _total_bytes(lab) - bytes_before - idle
    causes = diagnose(lab.folder, lab.wan.network().sites[0].router, seconds)
    calls = read_latencies(out / "samples.jtl")
    per_write = max(sent, 0) / writes if writes else 0.0
    return Measured(link, calls, writes, per_write, causes)


def diagnose(lab: Path, router: Host, seconds: int) -> tuple[str, ...]:
    """Return the causes that `keylag diagnose` names for the last seconds of a site.

    Raises LabError.
    """
    command = [
        *(str(Path(sys.executable).with_name("keylag")), "diagnose"),
        f"--state={site_folder(lab, router.name)}",
        f"--since={seconds}s",
        "--output=json",
    ]
    ended = subprocess.run(
        command_in(router.namespace, command),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        document = json.loads(ended.stdout)
    except ValueError as error:
        message = f"The calls could not be diagnosed:\n{ended.stderr}"
        raise LabError(message) from error
    return tuple(one["id"] for one in document["findings"])


def _send_calls(lab: GaleraWan, seconds: int, out: Path) -> None:
    """Send the calls of a client on the router of the first site."""
    command = load_command(lab, seconds, out)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        message = f"The load could not be sent:\n{ended.stderr}"
        raise LabError(message)


def load_command(
    lab: GaleraWan, seconds: int, out: Path, *, clients: int = 1
) -> list[str]:
    """Return the command that sends token calls on the router of the first site."""
    router = lab.wan.network().sites[0].router
    load = [
        *(str(Path(sys.executable).with_name("keylag")), "load", PLAN),
        f"--state={site_folder(lab.folder, router.name)}",
        *(f"--set=threads={clients}", "--set=loops=-1", "--set=ramp_seconds=0"),
        *(f"--set={name}_percent={share}" for name, share in SHARES.items()),
        *("--max-errors=100%", f"--set=duration_seconds={seconds}"),
        f"--out={out.resolve()}",
    ]
    return command_in(router.namespace, load)


def read_latencies(samples: Path) -> dict[str, Latencies]:
    """Return the latencies in a file of samples, by label; raises LabError."""
    found = defaultdict[str, list[float]](list)
    failed = defaultdict[str, int](int)
    for one in read_calls(samples):
        if not one.success:
            failed[one.label] += 1
        elif not one.refused:
            found[one.label].append(one.elapsed_seconds)
    return {
        label: Latencies(len(found[label]), failed[label], find_median(found[label]))
        for label in sorted({*found, *failed})
    }


def read_calls(samples: Path) -> list[Sample]:
    """Return the calls of a load, without its preparation; raises LabError."""
    try:
        return [one for one in read_samples(samples)[0] if not one.is_setup]
    except JtlError as error:
        message = f"No call was answered: {error}"
        raise LabError(message) from error


def find_median(seconds: Sequence[float]) -> Interval:
    """Return the median with its interval at 95 %; NaN without values."""
    if not seconds:
        return Interval(math.nan, math.nan, math.nan)
    mid = float(np.median(seconds))
    if len(seconds) < LEAST_SAMPLES:
        return Interval(-math.inf, mid, math.inf)
    found = bootstrap((seconds,), np.median, method="percentile", random_state=0)
    limits = found.confidence_interval
    return Interval(float(limits.low), mid, float(limits.high))


def _sent_bytes(lab: GaleraWan, seconds: float) -> int:
    before = _total_bytes(lab)
    time.sleep(seconds)
    return _total_bytes(lab) - before


def _total_bytes(lab: GaleraWan) -> int:
    return sum(one.bytes for one in lab.wan.traffic().values())


def _last_committed(lab: GaleraWan) -> int:
    """Return the number of the last transaction of the cluster; raises LabError."""
    numbers = [int(one["last_committed"]) for one in lab.status().values() if one]
    if not numbers:
        message = "No database node runs. `keylag lab galera-wan up` starts them."
        raise LabError(message)
    return max(numbers)
