"""What recording rules compute, for a cloud whose load is known.

Prometheus itself evaluates every rule on a small copy of the cloud under three
conditions: the average load, twice of it, and the incident. What doubles is a rate and
follows the load; what stays is a ratio.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from keylag_cloud import prometheus
from keylag_cloud.exposition import Labels, series_text
from keylag_cloud.model import Cloud, Load, Numbers, Series
from keylag_cloud.prometheus import Prometheus

ROUNDS: Final = 3
"""Rules may read what other rules record, so many times."""
HISTORY_SECONDS: Final = 7 * 3600
"""Longer than the longest window of a rule."""
APART_SECONDS: Final = 8 * 3600
RATE_SECONDS: Final = 60
"""Window of the rules; those with longer ones change as fast in the model."""
CONDITIONS: Final = ((1, False), (2, False), (1, True))
"""Load, and whether it is that of the incident."""
_SPREADS: Final[Mapping[str, Callable[[Numbers], float]]] = {
    "highest": np.max,
    "median": np.median,
    "lowest": np.min,
}
"""What the recorded spread of workers is of their shares of the load."""


@dataclass(frozen=True)
class RecordedSeries:
    """A recorded series, and how it follows the load."""

    name: str
    labels: Labels
    normal: float
    incident: float
    is_rate: bool

    @property
    def text(self) -> str:
        """The series as it stands before its value."""
        return series_text(self.name, self.labels)

    def scaled(self, share: float) -> "RecordedSeries":
        """Return it with a share of its rate; a ratio stays."""
        part = share if self.is_rate else 1.0
        return replace(self, normal=self.normal * part, incident=self.incident * part)

    def values(self, load: Load, times: Numbers) -> Numbers:
        """Return its values at times."""
        normal, incident = load.rates(times, RATE_SECONDS)
        if self.is_rate:
            return self.normal * normal + self.incident * incident
        return np.where(incident > normal, self.incident, self.normal)


class SmallCloud:
    """A Prometheus with one worker per controller, under each condition in turn."""

    def __init__(self, series: Sequence[Series], folder: Path, end: int) -> None:
        self._series = series
        self._folder = folder
        self._ends = [
            end - APART_SECONDS * (len(CONDITIONS) - number - 1)
            for number in range(len(CONDITIONS))
        ]
        self._write(self._raw_lines())

    @contextmanager
    def prometheus(self) -> Iterator[Prometheus]:
        """Start Prometheus on what was written so far."""
        log = self._folder / "small.log"
        with prometheus.running(self._folder / "small", log) as server:
            yield server

    def evaluate(self, rules: Sequence[Mapping[str, Any]]) -> list[RecordedSeries]:
        """Return what recording rules record, those that read other rules included."""
        recorded: dict[tuple[str, Labels], list[float]] = {}
        for _ in range(ROUNDS):
            known = set(recorded)
            with self.prometheus() as server:
                for rule in rules:
                    self._evaluate_rule(server, rule, recorded)
            if known == set(recorded):
                break
            added = {key: recorded[key] for key in recorded if key not in known}
            self._write(self._recorded_lines(added))
        return [_recorded_series(key, values) for key, values in recorded.items()]

    def _evaluate_rule(
        self,
        server: Prometheus,
        rule: Mapping[str, Any],
        recorded: dict[tuple[str, Labels], list[float]],
    ) -> None:
        for number, end in enumerate(self._ends):
            asked = {"query": rule["expr"], "time": end}
            for one in server.get("query", asked)["result"]:
                labels = {**one["metric"], **rule.get("labels", {})}
                labels.pop("__name__", None)
                key = rule["record"], tuple(sorted(labels.items()))
                values = recorded.setdefault(key, [0.0] * len(CONDITIONS))
                values[number] = float(one["value"][1])

    def _times(self, end: int) -> list[int]:
        """Return times of samples: few at first, as scraped in the last minutes."""
        few = range(end - HISTORY_SECONDS, end - 300, 3600)
        return [*few, *range(end - 300, end, 60), end - 30, end]

    def _raw_lines(self) -> Iterator[str]:
        for one in self._series:
            for (load, incident), end in zip(CONDITIONS, self._ends, strict=True):
                rate = (one.incident if incident else one.normal) * load
                start = end - HISTORY_SECONDS
                for time in self._times(end):
                    value = rate * (time - start) if one.counts else one.normal
                    yield f"{one.text}{value:.12g} {time}\n"

    def _recorded_lines(
        self, recorded: Mapping[tuple[str, Labels], Sequence[float]]
    ) -> Iterator[str]:
        for (name, labels), values in recorded.items():
            text = series_text(name, labels)
            for value, end in zip(values, self._ends, strict=True):
                for time in self._times(end):
                    yield f"{text}{value:.12g} {time}\n"

    def _write(self, lines: Iterator[str]) -> None:
        prometheus.create_blocks(lines, self._folder / "new", self._folder / "small")


def at_each_worker(one: RecordedSeries, cloud: Cloud) -> Iterator[RecordedSeries]:
    """Yield a recorded series for each worker, if it is one of a worker of Keystone.

    The small cloud has one worker, so the spread of many is computed here.
    """
    labels = dict(one.labels)
    shares = cloud.shares().get(labels.get("host_name", ""))
    if shares is None or labels["job"] != "keystone":
        yield one
    elif "spread" in labels:
        yield one.scaled(_SPREADS[labels["spread"]](shares) / float(shares.sum()))
    elif "instance" in labels:
        for number, share in enumerate(shares.tolist(), 1):
            instance = f"{labels['host_name']}/{number}"
            named = tuple(sorted({**labels, "instance": instance}.items()))
            yield replace(one.scaled(share / float(shares.sum())), labels=named)
    else:
        yield one


def recording_rules(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the recording rules of a rule file."""
    groups = document["groups"]
    return [rule for group in groups for rule in group["rules"] if "record" in rule]


def _recorded_series(
    key: tuple[str, Labels], values: Sequence[float]
) -> RecordedSeries:
    once, twice, incident = values
    is_rate = abs(twice - 2 * once) <= abs(twice - once)
    return RecordedSeries(*key, once, incident, is_rate)
