"""Coordinates of line charts, which the pages draw as SVG."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 640.0
HEIGHT: Final = 180.0
"""Size of a chart, in units of its viewBox."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """A line with its name; `points` in the format of an SVG polyline."""

    name: str
    points: str


@dataclass(frozen=True)
class LineChart:
    """Lines on common axes, with the range of each axis."""

    lines: Sequence[Line]
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    @property
    def view_box(self) -> str:
        """The viewBox of its SVG."""
        return f"0 0 {WIDTH:g} {HEIGHT:g}"


def line_chart(
    series: Iterable[tuple[str, Points]], x_range: tuple[float, float] | None = None
) -> LineChart:
    """Chart named series, and leave out empty ones; y begins at 0.

    Without an `x_range` the chart is as wide as its points.
    """
    shown = [(name, points) for name, points in series if points]
    points = [point for _, one in shown for point in one]
    x_range = x_range or _range([x for x, _ in points])
    highest = max((y for _, y in points), default=0.0)
    y_range = (0.0, highest or 1.0)
    lines = [Line(name, _polyline(one, x_range, y_range)) for name, one in shown]
    return LineChart(lines, x_range, y_range)


def _range(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (0.0, 1.0)


def _polyline(
    points: Points, x_range: tuple[float, float], y_range: tuple[float, float]
) -> str:
    # A browser draws no line of one point.
    drawn = points if len(points) > 1 else [*points, *points]
    return " ".join(
        f"{WIDTH * _fraction(x, x_range):.1f},"
        f"{HEIGHT * (1 - _fraction(y, y_range)):.1f}"
        for x, y in drawn
    )


def _fraction(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return (value - low) / (high - low) if high > low else 0.5
