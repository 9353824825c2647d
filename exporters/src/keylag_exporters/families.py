"""Samples of declared metrics, in Prometheus's text format.

prometheus_client validates and escapes every series in every scrape, which takes most
of a scrape's time. This module escapes a series once and caches it, because consecutive
scrapes have nearly the same series. A test compares both expositions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from prometheus_client.utils import floatToGoString

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from keylag_exporters.metric import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CACHED_SERIES = 20_000
"""Size of the cache of escaped series; each source bounds its series."""
MAX_PLAIN_INTEGER = 1_000_000
"""Go formats integers below it without an exponent."""


class Families:
    """Collects samples of declared metrics; an undeclared name raises KeyError."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = {one.name: one for one in metrics}
        self._lines: dict[str, list[str]] = {name: [] for name in self._metrics}
        self._added: set[tuple[str, tuple[str, ...]]] = set()

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add one sample of a counter or gauge."""
        series = _series(name, self._metrics[name].labels, labels)
        self._lines[name].append(_line(series, value))

    def add_once(self, name: str, value: float, *labels: str) -> None:
        """Add one sample, unless this metric has a sample with these labels."""
        if (name, labels) not in self._added:
            self._added.add((name, labels))
            self.add(name, value, *labels)

    def add_histogram(
        self,
        name: str,
        upper_bounds: Sequence[float],
        cumulative: Sequence[int],
        total: tuple[int, float],
        *labels: str,
    ) -> None:
        """Add one histogram.

        `cumulative` has a count for each of `upper_bounds`; `total` is the count and
        the sum of all observations.
        """
        names, lines = self._metrics[name].labels, self._lines[name]
        count, sum_ = total
        bounds = [*map(str, upper_bounds), "+Inf"]
        for bound, value in zip(bounds, [*cumulative, count], strict=True):
            series = _series(f"{name}_bucket", (*names, "le"), (*labels, bound))
            lines.append(_line(series, value))
        lines.append(_line(_series(f"{name}_count", names, labels), count))
        lines.append(_line(_series(f"{name}_sum", names, labels), sum_))

    def expose(self) -> bytes:
        """Return the text of all families that have a sample."""
        texts = (
            _header(self._metrics[name]) + "".join(lines)
            for name, lines in self._lines.items()
            if lines
        )
        return "".join(texts).encode()


def _line(series: str, value: float) -> str:
    return f"{series} {_number(value)}\n"


def _number(value: float) -> str:
    """Format a number as Go does; small integers take a fast path."""
    if type(value) is int and -MAX_PLAIN_INTEGER < value < MAX_PLAIN_INTEGER:
        return f"{value}.0"
    text: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return text


@lru_cache(CACHED_SERIES)
def _series(name: str, names: tuple[str, ...], labels: tuple[str, ...]) -> str:
    """Return a sample's name with its escaped labels."""
    pairs = sorted(zip(names, labels, strict=True))
    inner = ",".join(f'{key}="{_escape(label)}"' for key, label in pairs)
    return f"{name}{{{inner}}}" if inner else name


def _escape(label: str) -> str:
    return label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _header(one: Metric) -> str:
    help_text = one.help.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {one.name} {help_text}\n# TYPE {one.name} {one.type}\n"
