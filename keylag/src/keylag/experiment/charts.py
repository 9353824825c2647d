"""Compute the coordinates of charts, which the HTML report draws as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from keylag.experiment.analysis import Comparison, figures_by_arm
from keylag.experiment.arm_pair import Difference
from keylag.experiment.measures import PARTS
from keylag.experiment.messages import MEASURE_NAMES, PART_NAMES, format_percent
from keylag.experiment.samples import Row
from keylag.report.line_chart import LineChart, line_chart

BINS: Final = 60
SHOWN_SHARE: Final = 0.99
"""The slowest 1 % of the requests are cut off, so that the rest fills the chart."""


@dataclass(frozen=True)
class Bar:
    """One row of a waterfall or interval chart; positions in per cent of the width."""

    label: str
    left: float
    width: float
    middle: float
    text: str
    kind: str
    """The CSS class: whole, more, less, noise, interval or band."""


def median_by_round(rows: Sequence[Row], method: str, arms: Sequence[str]) -> LineChart:
    """Chart the median of every arm in milliseconds over the rounds."""
    figures = figures_by_arm(rows, method)
    return line_chart(
        (
            arm,
            [
                (round_number, 1000 * f["p50"])
                for round_number, f in figures.get(arm, {}).items()
            ],
        )
        for arm in arms
    )


def latency_distribution(
    rows: Sequence[Row], method: str, arms: Sequence[str]
) -> LineChart:
    """Chart a histogram of every arm's latencies: ms, and per cent of requests."""
    latencies = {arm: _latencies(rows, method, arm) for arm in arms}
    ordered = sorted(value for values in latencies.values() for value in values)
    if not ordered:
        return line_chart(())
    low, high = ordered[0], ordered[int(SHOWN_SHARE * (len(ordered) - 1))]
    # Latencies are whole milliseconds; narrower bins would alternate with empty ones.
    width = max(1.0, math.ceil((high - low + 1) / BINS))
    number = int((high - low) / width) + 1
    return line_chart(
        (
            arm,
            [
                (low + (n + 0.5) * width, 100 * count / len(values))
                for n, count in enumerate(_histogram(values, low, width, number))
            ],
        )
        for arm, values in latencies.items()
        if values
    )


def _latencies(rows: Sequence[Row], method: str, arm: str) -> list[float]:
    return [
        1000 * row.latency_seconds
        for row in rows
        if (row.arm, row.method) == (arm, method) and row.success and not row.warm_up
    ]


def _histogram(
    values: Sequence[float], low: float, width: float, number: int
) -> list[int]:
    bins = [0] * number
    for value in values:
        index = int((value - low) / width)
        if index < number:
            bins[index] += 1
    return bins


def waterfall(one: Comparison) -> list[Bar]:
    """Chart the steps from the base's mean to the arm's, one for each part."""
    mean = one.measures.get("mean")
    if mean is None or not one.parts:
        return []
    sums = [mean.base]
    for part in PARTS:
        sums.append(sums[-1] + one.parts[part].absolute.mid)
    scale = 100 / max(sums)
    steps = [
        _waterfall_bar(PART_NAMES[part], before, after, scale, one.parts[part])
        for part, before, after in zip(PARTS, sums, sums[1:], strict=False)
    ]
    first = Bar("base", 0, mean.base * scale, 0, f"{mean.base * 1000:.2f} ms", "whole")
    last = Bar(one.arm, 0, sums[-1] * scale, 0, f"{sums[-1] * 1000:.2f} ms", "whole")
    return [first, *steps, last]


def _waterfall_bar(
    label: str, before: float, after: float, scale: float, part: Difference
) -> Bar:
    kind = ("more" if after > before else "less") if part.differs else "noise"
    left, width = min(before, after) * scale, abs(after - before) * scale
    doubt = "" if part.differs else ", not shown to differ"
    text = f"{(after - before) * 1000:+.2f} ms{doubt}"
    return Bar(label, left, width, 0, text, kind)


def interval_chart(one: Comparison, smallest: float) -> list[Bar]:
    """Chart the relative interval of each measure over the band of no difference."""
    measures = [d for d in one.measures.values() if d.relative is not None]
    ends = [
        abs(end)
        for d in measures
        if d.relative
        for end in (d.relative.low, d.relative.high)
        if math.isfinite(end)
    ]
    limit = 1.1 * max([*ends, 2 * smallest])

    def position(value: float) -> float:
        return 50 + 50 * max(-1.0, min(1.0, value / limit))

    band_left, band_right = position(-smallest), position(smallest)
    band = Bar("", band_left, band_right - band_left, 50, "", "band")
    rows = [
        Bar(
            MEASURE_NAMES[d.name],
            position(d.relative.low),
            position(d.relative.high) - position(d.relative.low),
            position(d.relative.mid),
            format_percent(d.relative),
            "interval",
        )
        for d in measures
        if d.relative
    ]
    return [band, *rows]
