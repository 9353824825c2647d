"""Samples of declared metrics, as the families that a registry takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from keylag_exporters.model import Declared

_FAMILIES = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


class Families:
    """Collects samples of declared metrics; an undeclared name is a KeyError."""

    def __init__(self, metrics: Iterable[Declared]) -> None:
        self._families = {
            one.name: _FAMILIES[one.kind](one.name, one.help, labels=one.labels)
            for one in metrics
        }
        self._once: set[tuple[str, tuple[str, ...]]] = set()

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add one sample of a counter or gauge."""
        self._families[name].add_metric(labels, value)

    def add_once(self, name: str, value: float, *labels: str) -> None:
        """Add one sample unless there is one with these labels."""
        if (name, labels) not in self._once:
            self._once.add((name, labels))
            self.add(name, value, *labels)

    def add_histogram(
        self,
        name: str,
        uppers: Sequence[float],
        cumulative: Sequence[int],
        total: tuple[int, float],
        *labels: str,
    ) -> None:
        """Add one histogram; `total` is the count and the sum of all."""
        count, sum_ = total
        bounds = [*map(str, uppers), "+Inf"]
        buckets = list(zip(bounds, [*cumulative, count], strict=True))
        self._families[name].add_metric(labels, buckets, sum_)

    def __iter__(self) -> Any:
        return (one for one in self._families.values() if one.samples)
