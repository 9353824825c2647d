"""Measures calls of objects, and what their tokens take, at the proxy of a region."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from keylag.experiment.interval import Interval
from keylag.jtl import SETUP_PREFIX, Sample
from keylag.lab import intervals
from keylag.lab.galera import haproxy
from keylag.lab.galera.site import site_folder
from keylag.lab.iproute import LabError
from keylag.lab.load import LabLoad, keylag_on, read_samples
from keylag.lab.swift.lab import SwiftRegions
from keylag.lab.swift.servers import PROXY_PORT
from keylag.sample_cloud import users_file
from keylag.services.base import HOST
from keylag.stack_info import StackInfo

PLAN: Final = "object-storage"
LABELS: Final = ("GET object", "PUT object", "DELETE object")
FIRST_CALL: Final = f"{SETUP_PREFIX}PUT container"
"""The first call with each token, which prepares the load."""
SUBJECTS: Final = 6
"""Tokens: of the first users of the sample cloud, who may all write."""
CLIENTS: Final = 4
AUTHENTICATION: Final = "auth_token"
"""The operation of a service's breakdown that validates the token."""
KEYSTONE: Final = "keystone"
"""The phase of waiting for Keystone."""


@dataclass(frozen=True)
class Calls:
    """The calls of a kind that succeeded."""

    count: int
    failed: int
    mean_seconds: Interval
    """At the client, with its interval at 95 %; without one for few calls."""
    token_seconds: float
    """Mean time of auth_token."""
    validating_share: float = 0.0
    """The share of auth_token in the time at the client, of the calls that validated
    their token in Keystone; 0 without one."""

    @property
    def token_share(self) -> float:
        """The share of auth_token in the time at the client, of all calls."""
        return self.token_seconds / self.mean_seconds.mid if self.count else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON, which has null for what is unknown."""
        return {
            "count": self.count,
            "failed": self.failed,
            "mean_seconds": intervals.as_json(self.mean_seconds),
            "token_seconds": self.token_seconds,
            "token_share": self.token_share,
            "validating_share": self.validating_share,
        }


@dataclass(frozen=True)
class Measured:
    """What clients saw at the proxy of a region."""

    region: int
    calls: Mapping[str, Calls]
    """By their labels in the load plan, such as `GET object`."""
    validations: int
    """Calls that validated their token in Keystone."""
    validation_seconds: float
    """Median time of auth_token in these calls; 0 without one."""
    cached_seconds: float
    """Median time of auth_token in all others; 0 without one."""

    def as_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "region": self.region,
            "calls": {label: one.as_json() for label, one in self.calls.items()},
            "validations": self.validations,
            "validation_seconds": self.validation_seconds,
            "cached_seconds": self.cached_seconds,
        }


@dataclass(frozen=True)
class Load:
    """What clients send to the proxy of a region."""

    region: int
    seconds: int
    clients: int = CLIENTS
    object_bytes: int = 1024


def measure(lab: SwiftRegions, load: Load, out: Path) -> Measured:
    """Write, read and delete objects for some seconds.

    Each run has new tokens; its set-up sends the first call with each, which validates
    it.  `out` is a new folder for the samples.  Raises LabError.
    """
    router = lab.router(load.region)
    properties: dict[str, str | int] = {
        "target_host": HOST,
        "target_port": PROXY_PORT,
        "subjects": SUBJECTS,
        "object_bytes": load.object_bytes,
    }
    users = users_file(StackInfo(site_folder(lab.folder, router.name)))
    target = [f"--url={haproxy.keystone_url(router)}/v3", f"--users={users}"]
    sent = LabLoad(PLAN, load.seconds, load.clients, properties)
    sent.send(keylag_on(router), out, target)
    samples = read_samples(out)
    found = summarise(load.region, samples)
    missing = [label for label in LABELS if label not in found.calls]
    if missing:
        last = f"The last call: {samples[-1].label}, {samples[-1].code}."
        message = f"The load sent no {' and no '.join(missing)}. {last}"
        raise LabError(message)
    return found


def summarise(region: int, samples: Sequence[Sample]) -> Measured:
    """Return the figures of samples with the breakdown of the proxy server."""
    by_label = defaultdict[str, list[Sample]](list)
    for one in samples:
        by_label[one.label].append(one)
    tokens = [
        (token_seconds(one), keystone_seconds(one))
        for label in (*LABELS, FIRST_CALL)
        for one in by_label.get(label, ())
        if one.timing
    ]
    asked = [token for token, keystone in tokens if keystone > 0]
    cached = [token for token, keystone in tokens if keystone == 0]
    return Measured(
        region,
        {label: _calls(by_label[label]) for label in LABELS if label in by_label},
        len(asked),
        median(asked) if asked else 0.0,
        median(cached) if cached else 0.0,
    )


def _calls(samples: Sequence[Sample]) -> Calls:
    served = [one for one in samples if one.success]
    tokens = [token_seconds(one) for one in served if one.timing]
    asked = [one for one in served if keystone_seconds(one) > 0]
    share = (
        sum(map(token_seconds, asked)) / sum(one.elapsed_seconds for one in asked)
        if asked
        else 0.0
    )
    return Calls(
        len(served),
        len(samples) - len(served),
        intervals.mean([one.elapsed_seconds for one in served]),
        fmean(tokens) if tokens else 0.0,
        share,
    )


def token_seconds(sample: Sample) -> float:
    """Return the time of auth_token in a call."""
    cells = sample.timing.cells if sample.timing else {}
    return sum(
        seconds
        for (_, operation), seconds in cells.items()
        if operation == AUTHENTICATION
    )


def keystone_seconds(sample: Sample) -> float:
    """Return how long auth_token waited for Keystone in a call."""
    cells = sample.timing.cells if sample.timing else {}
    return cells.get((KEYSTONE, AUTHENTICATION), 0.0)
