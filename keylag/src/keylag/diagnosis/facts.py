"""What was measured in a window: token calls by kind, and the other measurements."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from keylag.diagnosis.configuration import NO_CONFIGURATION, Configuration
from keylag.diagnosis.measurements import MEASUREMENTS
from keylag.diagnosis.prometheus import Sample
from keylag.phases import Cell

OF_CALLS: Final = ("calls", "call_buckets", "cells", "statements", "round_trips")
"""Names of the measurements that `make_calls` reads."""
FEW_CALLS: Final = 5
"""A kind of call with fewer calls in the window says nothing."""
QUANTILES: Final = (0.5, 0.95)
"""Shares of the calls up to the quantiles that are shown: p50 and p95."""
SERVED: Final = "served"
REFUSED: Final = "refused"
FAILED: Final = "failed"
"""How a call ended: as asked, not allowed (4xx), or by an error of Keystone (5xx)."""
OUTCOMES: Final = {"2": SERVED, "5": FAILED}
"""By the first digit of the status code; all others are refused."""


class MissingSourceError(Exception):
    """A rule needs a source that sends nothing; its argument is the source's name."""


@dataclass(frozen=True)
class Window:
    """The time of a measurement, in Unix seconds."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """The length."""
        return self.end - self.start


Kind = tuple[str, str]
"""Method and authentication method of token calls: ("POST", "password")."""


def ratio(part: float, whole: float) -> float:
    """Return a share or a mean; 0 of nothing."""
    return part / whole if whole else 0.0


def time_in(
    cells: Mapping[Cell, float], phases: Iterable[str], operations: Iterable[str]
) -> float:
    """Return the time in phases, in operations; nothing named means all."""
    wanted, steps = set(phases), set(operations)
    return math.fsum(
        seconds
        for (phase, operation), seconds in cells.items()
        if (not wanted or phase in wanted) and (not steps or operation in steps)
    )


@dataclass(frozen=True)
class Calls:
    """Token calls of one kind that ended alike; times in seconds per call."""

    kind: Kind
    outcome: str
    """SERVED, REFUSED or FAILED."""
    per_second: float
    cells: Mapping[Cell, float]
    statements: float
    """SQL statements per call."""
    round_trips: float
    """Calls to the cache server per call."""
    buckets: Mapping[float, float] = field(default_factory=dict)
    """Calls per second that took at most so many seconds."""

    @cached_property
    def seconds(self) -> float:
        """Mean wall time in Keystone."""
        return math.fsum(self.cells.values())

    def spent(
        self, phases: Iterable[str] = (), operations: Iterable[str] = ()
    ) -> float:
        """Return the time in phases, in operations; nothing named means all."""
        return time_in(self.cells, phases, operations)

    def quantile(self, share: float) -> float | None:
        """Return a quantile of the wall time; None without buckets."""
        return bucket_quantile(self.buckets, share)

    @cached_property
    def quantiles(self) -> dict[float, float]:
        """The p50 and the p95 by their share of the calls; empty without buckets."""
        found = {share: self.quantile(share) for share in QUANTILES}
        return {share: value for share, value in found.items() if value is not None}


def bucket_quantile(buckets: Mapping[float, float], share: float) -> float | None:
    """Return a quantile of cumulative buckets, as Prometheus interpolates it."""
    bounds = sorted(buckets)
    if not bounds or not buckets[bounds[-1]]:
        return None
    rank = share * buckets[bounds[-1]]
    below, count_below = 0.0, 0.0
    for bound in bounds:
        count = buckets[bound]
        if count >= rank and count > count_below:
            if math.isinf(bound):
                return below
            part = (rank - count_below) / (count - count_below)
            return below + (bound - below) * part
        below, count_below = (bound, count) if math.isfinite(bound) else (below, count)
    return below


@dataclass(frozen=True)
class Facts:
    """All that is known of a window."""

    window: Window
    calls: Sequence[Calls]
    """Kinds of token calls with the most time first."""
    answers: Mapping[str, Sequence[Sample]]
    """Results by name of the measurement; only of sources that send."""
    queries: Mapping[str, str] = field(default_factory=dict)
    """PromQL by name of the measurement, for the reader."""
    configuration: Configuration = NO_CONFIGURATION
    """Keystone's, as far as it was given."""
    limitations: Sequence[str] = ()
    """Sentences on what these facts do not hold."""

    def samples(self, name: str) -> Sequence[Sample]:
        """Return the values of a measurement; raises MissingSourceError."""
        if name not in self.answers:
            raise MissingSourceError(MEASUREMENTS[name].source)
        return self.answers[name]

    def number(self, name: str) -> float:
        """Return the sum of a measurement's values; 0 if there are none."""
        found = (one.value for one in self.samples(name))
        return math.fsum(value for value in found if not math.isnan(value))

    def by(self, name: str, label: str, **labels: str) -> dict[str, float]:
        """Return the sums of a measurement's values by a label, of series with labels.

        A series without a label has the empty value.
        """
        found: dict[str, float] = defaultdict(float)
        for one in self.samples(name):
            if all(one.labels.get(key, "") == value for key, value in labels.items()):
                found[one.labels.get(label, "")] += one.value
        return dict(found)

    def buckets(self, name: str, **labels: str) -> dict[float, float]:
        """Return the cumulative buckets of a histogram, of series with labels."""
        found: dict[float, float] = defaultdict(float)
        for one in self.samples(name):
            if labels.items() <= one.labels.items():
                found[float(one.labels["le"])] += one.value
        return dict(found)

    def has(self, *names: str) -> bool:
        """Return whether the sources of measurements send."""
        return all(name in self.answers for name in names)

    @property
    def served(self) -> list[Calls]:
        """Calls that did what they were asked."""
        return [one for one in self.calls if one.outcome == SERVED]

    @property
    def refused(self) -> list[Calls]:
        """Calls that were refused, such as wrong passwords."""
        return [one for one in self.calls if one.outcome == REFUSED]

    @property
    def failed(self) -> list[Calls]:
        """Calls that ended with an error of Keystone."""
        return [one for one in self.calls if one.outcome == FAILED]

    @cached_property
    def calls_per_second(self) -> float:
        """Served token calls per second."""
        return math.fsum(one.per_second for one in self.served)

    @cached_property
    def token_seconds(self) -> float:
        """Time of all token calls in Keystone, per second."""
        return math.fsum(one.per_second * one.seconds for one in self.calls)

    @cached_property
    def busy_seconds(self) -> float:
        """Time of all requests in Keystone, per second: the busy workers."""
        other = self.number("other_seconds") if self.has("other_seconds") else 0.0
        return self.token_seconds + other

    def find(self, kind: Kind) -> Calls | None:
        """Return the served calls of a kind."""
        return next((one for one in self.served if one.kind == kind), None)


def make_calls(answers: Mapping[str, Sequence[Sample]], window: Window) -> list[Calls]:
    """Return the kinds of token calls, those with the most time first."""
    groups: dict[tuple[Kind, str], dict[str, list[Sample]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for name in OF_CALLS:
        for one in answers.get(name, ()):
            groups[_group(one)][name].append(one)
    made = [
        made
        for (kind, outcome), found in groups.items()
        if (made := _make_calls(kind, outcome, found, window))
    ]
    return sorted(made, key=lambda one: -one.per_second * one.seconds)


def _group(one: Sample) -> tuple[Kind, str]:
    labels = one.labels
    kind = (labels["http_request_method"], labels.get("keystone_auth_method", ""))
    status = labels["http_response_status_code"]
    return kind, OUTCOMES.get(status[:1], REFUSED)


def _make_calls(
    kind: Kind, outcome: str, found: Mapping[str, list[Sample]], window: Window
) -> Calls | None:
    per_second = math.fsum(one.value for one in found["calls"])
    if per_second * window.seconds < FEW_CALLS:
        return None
    cells: dict[Cell, float] = defaultdict(float)
    for one in found["cells"]:
        cell = one.labels["keystone_phase"], one.labels["keystone_operation"]
        cells[cell] += one.value / per_second
    buckets: dict[float, float] = defaultdict(float)
    for one in found["call_buckets"]:
        buckets[float(one.labels["le"])] += one.value
    return Calls(
        kind=kind,
        outcome=outcome,
        per_second=per_second,
        cells=dict(cells),
        statements=math.fsum(one.value for one in found["statements"]) / per_second,
        round_trips=math.fsum(one.value for one in found["round_trips"]) / per_second,
        buckets=dict(buckets),
    )
