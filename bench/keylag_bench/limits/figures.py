"""Compute the least time of each call, and how far above it Keystone is.

The figure of a restart is the mean of the middle half of its samples: as robust as the
median, and unlike medians the parts of a mean add up.  A restart is one value of the
intervals, because one Keystone process is some per cent faster or slower than the next.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from keylag.experiment.interval import Interval
from keylag.lab import intervals
from keylag.phases import CATEGORIES
from keylag_bench.limits.client import Sample
from keylag_bench.limits.schedule import Restart
from keylag_bench.limits.servers import PART
from keylag_bench.limits.tables import CALLS, OUTSIDE, PARTS, TUNINGS, Seconds

PLACES: Final = (*CATEGORIES, OUTSIDE)


@dataclass(frozen=True)
class Figure:
    """A duration."""

    seconds: Interval
    places: Seconds
    """The mean of the restarts by place; they add up to the estimate."""


@dataclass(frozen=True)
class CallFigure(Figure):
    """The duration of a call of one tuning."""

    ratio: Interval
    """To the least time."""
    above: Seconds
    """What it takes more than the least time, by place."""
    saved: Interval | None
    """The share that it takes less than the tuning before; None for the first one."""
    counts: Mapping[str, float]
    """SQL statements and cache calls."""


@dataclass(frozen=True)
class Figures:
    """All figures of a run."""

    parts: Mapping[str, Figure]
    least: Mapping[str, Figure]
    """By call: the sum of its parts."""
    calls: Mapping[str, Mapping[str, CallFigure]]
    """By call and tuning."""


def analyse(restarts: Sequence[Restart]) -> Figures:
    """Return the figures of two or more restarts."""
    middles = [{key: middle_mean(one[key]) for key in one} for one in restarts]
    seconds = [{key: one.seconds for key, one in found.items()} for found in middles]
    parts = {name: [one[PART, name] for one in seconds] for name in PARTS}
    least = {
        name: [add(one[PART, part] for part in call.parts) for one in seconds]
        for name, call in CALLS.items()
    }
    calls = {
        (tuning, call): [one[tuning, call] for one in seconds]
        for tuning in TUNINGS
        for call in CALLS
    }
    return Figures(
        {name: Figure(*_summary(found)) for name, found in parts.items()},
        {name: Figure(*_summary(found)) for name, found in least.items()},
        {
            call: {
                tuning: CallFigure(
                    *_summary(calls[tuning, call]),
                    ratio=_ratio(calls[tuning, call], least[call]),
                    above=_difference(calls[tuning, call], least[call]),
                    saved=(
                        _saving(calls[tuning, call], calls[one.before, call])
                        if one.before
                        else None
                    ),
                    counts=_mean([found[tuning, call].counts for found in middles]),
                )
                for tuning, one in TUNINGS.items()
            }
            for call in CALLS
        },
    )


def middle_mean(samples: Sequence[Sample]) -> Sample:
    """Return the mean of the middle half of samples, ordered by their total time."""
    ordered = sorted(samples, key=lambda one: one.total_seconds)
    quarter = len(ordered) // 4
    middle = ordered[quarter : len(ordered) - quarter]
    return Sample(
        _mean([one.seconds for one in middle]), _mean([one.counts for one in middle])
    )


def add(all_seconds: Iterable[Seconds]) -> dict[str, float]:
    """Return the sum of durations, by place."""
    found = list(all_seconds)
    return {place: sum(one.get(place, 0.0) for one in found) for place in PLACES}


def _total(seconds: Seconds) -> float:
    return sum(seconds.values())


def _mean(all_values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for values in all_values for name in values)
    return {
        name: sum(values.get(name, 0.0) for values in all_values) / len(all_values)
        for name in names
    }


def _summary(of_restarts: Sequence[Seconds]) -> tuple[Interval, Seconds]:
    totals = [_total(one) for one in of_restarts]
    return intervals.mean(totals), _mean(of_restarts)


def _ratio(these: Sequence[Seconds], others: Sequence[Seconds]) -> Interval:
    pairs = zip(map(_total, these), map(_total, others), strict=True)
    return intervals.ratio(list(pairs))


def _saving(these: Sequence[Seconds], others: Sequence[Seconds]) -> Interval:
    ratio = _ratio(these, others)
    return Interval(1 - ratio.high, 1 - ratio.mid, 1 - ratio.low)


def _difference(these: Sequence[Seconds], others: Sequence[Seconds]) -> Seconds:
    here, there = _mean(these), _mean(others)
    return {place: here.get(place, 0.0) - there.get(place, 0.0) for place in PLACES}
