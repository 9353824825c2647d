"""The model of a large cloud: series that grow linearly with the load.

Every counter is `normal` times the load outside the incident plus `incident` times the
load within, both in seconds of one average load. So the sum of any counters has the
same form, and its rate is exact arithmetic.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from keylag_cloud import exposition
from keylag_cloud.exposition import Labels, Sample
from keylag_dashboards.config import ROUTE

Numbers = NDArray[np.float64]

TOKEN_CALLS_PER_SECOND: Final = 1000
OTHER_CALLS_SHARE: Final = 0.1
"""Calls to other routes, relative to token calls."""
SLOWER: Final = 5
"""How many times slower calls are in the incident; two buckets."""
SLOWER_BUCKETS: Final = 2
SERVICES: Final = ("cinder", "glance", "neutron", "nova")
GRID_SECONDS: Final = 15
INCIDENT_SECONDS: Final = 1200
INCIDENT_BEFORE_END: Final = 4 * 3600
HISTORY_SECONDS: Final = 86400
"""How long workers have run when the first sample is taken."""
EXPORTER: Final = ("job", "keylag-exporter")
CLUSTER: Final = (("cluster", "cloud-1"), ("region", "RegionOne"))

_BY_ROUTE: Final = re.compile(
    "http_server_request_duration_seconds_bucket|keystone_request_.+"
)
_COUNT: Final = "http_server_request_duration_seconds_count"


@dataclass(frozen=True)
class Series:
    """One series of the cloud: its text, and how it grows."""

    name: str
    labels: Labels
    counts: bool
    normal: float
    """Growth per second of average load; the value of a gauge."""
    incident: float

    @cached_property
    def text(self) -> str:
        """The series as it stands before its value."""
        return exposition.series_text(self.name, self.labels)


@dataclass(frozen=True)
class Cloud:
    """The size of a cloud, and the seed of its differences."""

    controllers: int = 3
    workers: int = 100
    """Keystone's workers on each controller."""
    service_workers: int = 8
    """Workers of each service on each controller."""
    seed: int = 1
    tokens_only: bool = False
    """Whether breakdowns and histograms of other routes are dropped."""

    def hosts(self) -> list[str]:
        """Return the names of the controllers."""
        return [f"controller-{number}" for number in range(1, self.controllers + 1)]

    def shares(self) -> Mapping[str, Numbers]:
        """Return the share of the load that each worker of each host has."""
        random = np.random.default_rng(self.seed)
        weights = random.lognormal(0, 0.3, (self.controllers, self.workers))
        return dict(zip(self.hosts(), weights / weights.sum(), strict=True))

    def condensed(self) -> "Cloud":
        """Return the cloud with one worker per controller.

        Sums over the workers of a controller change only by a factor.
        """
        return replace(self, workers=1, service_workers=1)

    def keystone(self) -> Iterator[Series]:
        """Yield the series of all workers of Keystone."""
        rates = worker_rates(exposition.load("keystone"))
        if self.tokens_only:
            rates = [one for one in rates if not _is_dropped(one)]
        for host, shares in self.shares().items():
            for number, share in enumerate(shares.tolist(), 1):
                yield from _at_worker(rates, "keystone", host, number, share)

    def services(self) -> Iterator[Series]:
        """Yield the series of services that validate tokens."""
        rates = worker_rates(exposition.load("service"))
        numbers = range(1, self.service_workers + 1)
        share = 1 / (len(SERVICES) * self.controllers * self.service_workers)
        for service, host, number in product(SERVICES, self.hosts(), numbers):
            yield from _at_worker(rates, service, host, number, share)

    def exporters(self) -> Iterator[Series]:
        """Yield the series of one `keylag-exporter all` per controller."""
        rates = worker_rates(exposition.load("exporters"))
        for host in self.hosts():
            target = (
                ("job", "keylag-exporter"),
                ("instance", f"{host}:9720"),
                *CLUSTER,
            )
            for one in rates:
                named = list(self._uwsgi_labels(one.labels))
                workers = max(len(named), 1)
                share = 1 / self.controllers / workers if one.counts else 1
                for labels in named:
                    grown = replace(one, labels=(*labels, *target))
                    yield replace(
                        grown, normal=one.normal * share, incident=one.incident * share
                    )

    def _uwsgi_labels(self, labels: Labels) -> Iterator[Labels]:
        """Yield the labels, for each worker of uWSGI if they name one."""
        named = dict(labels)
        numbers = range(1, self.workers + 1) if "worker" in named else (0,)
        if named.get("worker", "1") == "1":
            for number in numbers:
                made = named | {"worker": str(number)} if number else named
                yield tuple(made.items())

    def series(self) -> Iterator[Series]:
        """Yield every series that Prometheus scrapes."""
        yield from self.keystone()
        yield from self.services()
        yield from self.exporters()


def _at_worker(
    rates: Sequence[Series], job: str, host: str, number: int, share: float
) -> Iterator[Series]:
    identity = (
        *(("job", job), ("service_name", job), ("host_name", host), *CLUSTER),
        *(
            ("instance", f"{host}/{number}"),
            ("service_instance_id", f"{host}/{number}"),
        ),
    )
    for one in rates:
        part = share if one.counts else 1
        labels = (*one.labels, *identity)
        yield Series(
            one.name, labels, one.counts, one.normal * part, one.incident * part
        )


def worker_rates(samples: Sequence[Sample]) -> list[Series]:
    """Return series whose growth is that of the whole cloud in one worker."""
    token_calls = sum(one.value for one in samples if _is_token_call(one)) or 1
    others = sum(
        one.value for one in samples if one.name == _COUNT and not _is_token_call(one)
    )
    factor = TOKEN_CALLS_PER_SECOND / token_calls
    rare = OTHER_CALLS_SHARE * token_calls / others if others else 1.0
    slower = _slower_buckets(samples)
    return [
        _with_rate(one, factor * (rare if _is_other_route(one) else 1), slower)
        for one in samples
    ]


def _is_token_call(sample: Sample) -> bool:
    return sample.name == _COUNT and ("http_route", ROUTE) in sample.labels


def _is_dropped(one: Series) -> bool:
    """Return whether the token route does without a series: docs say how."""
    is_of_tokens = ("http_route", ROUTE) in one.labels
    return not is_of_tokens and bool(_BY_ROUTE.fullmatch(one.name))


def _is_other_route(sample: Sample) -> bool:
    labels = dict(sample.labels)
    return "http_request_method" in labels and labels.get("http_route") != ROUTE


def _with_rate(
    sample: Sample, factor: float, slower: Mapping[tuple[str, Labels], float]
) -> Series:
    if not sample.counts:
        return Series(sample.name, sample.labels, False, sample.value, sample.value)  # noqa: FBT003
    normal = sample.value * factor
    if sample.name.endswith("_bucket"):
        incident = slower[sample.name, sample.labels] * factor
    else:
        incident = normal * (SLOWER if "_seconds_" in sample.name else 1)
        if sample.name.endswith("_count"):
            incident = normal
    return Series(sample.name, sample.labels, True, normal, incident)  # noqa: FBT003


def _slower_buckets(samples: Sequence[Sample]) -> dict[tuple[str, Labels], float]:
    """Return the values of buckets if each call were some buckets slower."""
    histograms = defaultdict[tuple[str, Labels], list[tuple[float, Sample]]](list)
    for one in samples:
        if one.name.endswith("_bucket"):
            rest = tuple(pair for pair in one.labels if pair[0] != "le")
            bound = float(dict(one.labels)["le"])
            histograms[one.name, rest].append((bound, one))
    found = {}
    for buckets in histograms.values():
        ordered = [one for _, one in sorted(buckets, key=lambda pair: pair[0])]
        values = [0.0] * SLOWER_BUCKETS + [one.value for one in ordered]
        values[len(ordered) - 1] = ordered[-1].value
        for one, value in zip(ordered, values, strict=False):
            found[one.name, one.labels] = value
    return found


class Load:
    """The load over time, as a multiple of the average: days, noise, one incident."""

    def __init__(self, start: int, end: int, seed: int) -> None:
        self.start, self.end = start, end
        self.incident = (
            end - INCIDENT_BEFORE_END,
            end - INCIDENT_BEFORE_END + INCIDENT_SECONDS,
        )
        self._grid = np.arange(
            start - HISTORY_SECONDS, end + GRID_SECONDS, GRID_SECONDS
        )
        noise = np.random.default_rng(seed).normal(1, 0.05, len(self._grid))
        hours = self._grid % 86400 / 3600
        loads = (1 + 0.5 * np.sin((hours - 8) / 24 * 2 * math.pi)) * noise.clip(
            0.7, 1.3
        )
        within = (self._grid > self.incident[0]) & (self._grid <= self.incident[1])
        # The load of a point is that of the interval before it.
        self._normal = np.cumsum(np.where(within, 0, loads)) * GRID_SECONDS
        self._incident = np.cumsum(np.where(within, loads, 0)) * GRID_SECONDS

    def seconds(self, times: Numbers) -> tuple[Numbers, Numbers]:
        """Return the seconds of average load until each time: normal, incident."""
        return (
            np.interp(times, self._grid, self._normal),
            np.interp(times, self._grid, self._incident),
        )

    def rates(self, times: Numbers, window: float) -> tuple[Numbers, Numbers]:
        """Return the mean load in the window before each time."""
        now, before = self.seconds(times), self.seconds(times - window)
        return (now[0] - before[0]) / window, (now[1] - before[1]) / window
