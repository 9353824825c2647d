"""Samples of declared metrics, in Prometheus's text format.

prometheus_client validates and escapes the names and labels of every sample in every
scrape, which took most of a scrape's time. Here a series is escaped once and
remembered: the next scrape has nearly the same series. A test compares the texts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from prometheus_client.utils import floatToGoString

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from keylag_exporters.model import Declared

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_SERIES = 20_000
"""Series to remember: each source limits how many it has."""
MAX_PLAIN = 1_000_000
"""Go writes whole numbers below it without an exponent."""


class Families:
    """Collects samples of declared metrics; an undeclared name is a KeyError."""

    def __init__(self, metrics: Iterable[Declared]) -> None:
        self._declared = {one.name: one for one in metrics}
        self._lines: dict[str, list[str]] = {name: [] for name in self._declared}
        self._once: set[tuple[str, tuple[str, ...]]] = set()

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add one sample of a counter or gauge."""
        series = _series(name, self._declared[name].labels, labels)
        self._lines[name].append(_line(series, value))

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
        names, lines = self._declared[name].labels, self._lines[name]
        count, sum_ = total
        bounds = [*map(str, uppers), "+Inf"]
        for bound, value in zip(bounds, [*cumulative, count], strict=True):
            series = _series(f"{name}_bucket", (*names, "le"), (*labels, bound))
            lines.append(_line(series, value))
        lines.append(_line(_series(f"{name}_count", names, labels), count))
        lines.append(_line(_series(f"{name}_sum", names, labels), sum_))

    def expose(self) -> bytes:
        """Return the text of all families that have a sample."""
        texts = (
            _header(self._declared[name]) + "".join(lines)
            for name, lines in self._lines.items()
            if lines
        )
        return "".join(texts).encode()


def _line(series: str, value: float) -> str:
    """Return the line of one sample."""
    return f"{series} {_number(value)}\n"


def _number(value: float) -> str:
    """Return a number as Go writes it; most are counts, and small."""
    if type(value) is int and -MAX_PLAIN < value < MAX_PLAIN:
        return f"{value}.0"
    text: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return text


@lru_cache(MAX_SERIES)
def _series(name: str, names: tuple[str, ...], labels: tuple[str, ...]) -> str:
    """Return a sample's name with its labels."""
    pairs = sorted(zip(names, labels, strict=True))
    inner = ",".join(f'{key}="{_escaped(label)}"' for key, label in pairs)
    return f"{name}{{{inner}}}" if inner else name


def _escaped(label: str) -> str:
    """Return a label's value as it stands between quotes."""
    return label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _header(one: Declared) -> str:
    """Return the lines before a family's samples."""
    help_ = one.help.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {one.name} {help_}\n# TYPE {one.name} {one.kind}\n"
