"""Where everything of a chart goes: pure numbers, which the page draws as SVG."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from keylag.experiment.analysis import Comparison, Difference, by_arm
from keylag.experiment.measures import PARTS
from keylag.experiment.samples import Row
from keylag.experiment.words import MEASURE_NAMES, PART_NAMES, per_cent

WIDTH: Final = 640.0
HEIGHT: Final = 180.0
"""Of a line chart, in the units of its viewBox."""
BINS: Final = 60
SHOWN: Final = 0.99
"""The slowest hundredth of the requests would make the rest a line at the left."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """One arm's line; `points` as SVG's polyline wants them."""

    name: str
    points: str


@dataclass(frozen=True)
class Lines:
    """Lines of arms with points on one scale, and what is at the ends of its axes."""

    lines: Sequence[Line]
    x_ends: tuple[float, float]
    y_ends: tuple[float, float]


@dataclass(frozen=True)
class Step:
    """One row of a waterfall or an interval chart; places in per cent of the width."""

    label: str
    left: float
    width: float
    mark: float
    text: str
    kind: str


def drift(rows: Sequence[Row], method: str, arms: Sequence[str]) -> Lines:
    """Show every arm's median in milliseconds, block by block."""
    found = by_arm(rows, method)
    return _lines(
        {
            arm: [(block, 1000 * f["p50"]) for block, f in found.get(arm, {}).items()]
            for arm in arms
        }
    )


def distribution(rows: Sequence[Row], method: str, arms: Sequence[str]) -> Lines:
    """Show how many of an arm's requests took so many milliseconds, as shares."""
    taken = {arm: _latencies(rows, method, arm) for arm in arms}
    everything = sorted(value for values in taken.values() for value in values)
    if not everything:
        return _lines({})
    low, high = everything[0], everything[int(SHOWN * (len(everything) - 1))]
    # Whole milliseconds: narrower bins would be empty in turn.
    width = max(1.0, math.ceil((high - low + 1) / BINS))
    number = int((high - low) / width) + 1
    return _lines(
        {
            arm: [
                (low + (n + 0.5) * width, 100 * count / len(values))
                for n, count in enumerate(_binned(values, low, width, number))
            ]
            for arm, values in taken.items()
            if values
        }
    )


def _latencies(rows: Sequence[Row], method: str, arm: str) -> list[float]:
    return [
        1000 * row.latency_seconds
        for row in rows
        if (row.arm, row.method) == (arm, method) and row.success and not row.warm_up
    ]


def _binned(
    values: Sequence[float], low: float, width: float, number: int
) -> list[int]:
    bins = [0] * number
    for value in values:
        place = int((value - low) / width)
        if place < number:
            bins[place] += 1
    return bins


def _lines(series: Mapping[str, Points]) -> Lines:
    points = [point for one in series.values() for point in one]
    x_ends = _ends([x for x, _ in points])
    y_ends = (0.0, _ends([y for _, y in points])[1])
    return Lines(
        [Line(n, _placed(one, x_ends, y_ends)) for n, one in series.items() if one],
        x_ends,
        y_ends,
    )


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (0.0, 1.0)


def _placed(
    points: Points, x_ends: tuple[float, float], y_ends: tuple[float, float]
) -> str:
    return " ".join(
        f"{WIDTH * _share(x, x_ends):.1f},{HEIGHT * (1 - _share(y, y_ends)):.1f}"
        for x, y in points
    )


def _share(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return (value - low) / (high - low) if high > low else 0.5


def waterfall(one: Comparison) -> list[Step]:
    """Lead from the base's mean to the arm's, a step for each part."""
    mean = one.measures.get("mean")
    if mean is None or not one.parts:
        return []
    places = [mean.base]
    for part in PARTS:
        places.append(places[-1] + one.parts[part].absolute.mid)
    scale = 100 / max(places)
    steps = [
        _step(PART_NAMES[part], before, after, scale, one.parts[part])
        for part, before, after in zip(PARTS, places, places[1:], strict=False)
    ]
    first = Step("base", 0, mean.base * scale, 0, f"{mean.base * 1000:.2f} ms", "whole")
    last = Step(one.arm, 0, mean.arm * scale, 0, f"{mean.arm * 1000:.2f} ms", "whole")
    return [first, *steps, last]


def _step(
    label: str, before: float, after: float, scale: float, part: Difference
) -> Step:
    clear = part.absolute.low > 0 or part.absolute.high < 0
    kind = ("more" if after > before else "less") if clear else "noise"
    left, width = min(before, after) * scale, abs(after - before) * scale
    text = f"{(after - before) * 1000:+.2f} ms{'' if clear else ', within noise'}"
    return Step(label, left, width, 0, text, kind)


def intervals(one: Comparison, smallest: float) -> list[Step]:
    """Place the relative intervals of all measures, with what matters as a band."""
    found = [d for d in one.measures.values() if d.relative is not None]
    ends = [
        abs(end)
        for d in found
        if d.relative
        for end in (d.relative.low, d.relative.high)
        if math.isfinite(end)
    ]
    far = 1.1 * max([*ends, 2 * smallest])

    def place(value: float) -> float:
        return 50 + 50 * max(-1.0, min(1.0, value / far))

    band_left, band_right = place(-smallest), place(smallest)
    band = Step("", band_left, band_right - band_left, 50, "", "band")
    rows = [
        Step(
            MEASURE_NAMES[d.name],
            place(d.relative.low),
            place(d.relative.high) - place(d.relative.low),
            place(d.relative.mid),
            per_cent(d.relative),
            "interval",
        )
        for d in found
        if d.relative
    ]
    return [band, *rows]
