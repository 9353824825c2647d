"""What a source is: metrics and options that it declares, and one method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


class UnreachableError(Exception):
    """What the source reads cannot be reached: no server, no file, no permission."""


@dataclass(frozen=True)
class Declared:
    """A metric family: declared once, exported and documented from here."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """A setting of a source: a flag, an environment variable and a key in a file.

    `secret` marks what may come from a file or the environment, never from a flag.
    """

    name: str
    help: str
    type: type = str
    default: Any = None
    required: bool = False
    secret: bool = False


class Source(Protocol):
    """Reads one thing. `collect` may block; it is called with a time-out around it."""

    def collect(self) -> Iterable[Metric]:
        """Return the families of this moment, or raise."""

    def close(self) -> None:
        """Let go of everything within a second."""


@dataclass(frozen=True)
class Kind:
    """One row of the table of sources."""

    name: str
    help: str
    options: tuple[Option, ...]
    metrics: tuple[Declared, ...]
    open: Callable[[Mapping[str, Any]], Source]
    port: int


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
