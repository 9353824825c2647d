"""Calls that are slow for a reason that no cause explains."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.facts import Calls, Kind, ratio
from keylag.phases import category_of

ENOUGH_CALLS: Final = 30
"""With fewer calls, in the window or in the baseline, one slow moment is most."""
MEDIAN: Final = 0.5


@dataclass(frozen=True)
class Unexplained:
    """A kind of calls that takes several times as long as it should."""

    kind: Kind
    seconds: float
    """Mean time of a call, without what findings cost it."""
    expected: float
    """That of a healthy Keystone on a machine of this speed."""
    category: str
    """The category with most time beyond the expected one; empty beside findings."""
    category_seconds: float
    """That time."""

    @property
    def times(self) -> float:
        """How many times as long as expected a call takes."""
        return self.seconds / self.expected


def find_unexplained(
    case: Case, explained: Mapping[Kind, float]
) -> Iterator[Unexplained]:
    """Yield the kinds of calls that findings do not explain.

    `explained` are the seconds of a call that findings cost at most.  Both mean and
    median are compared, because a few cold calls are no riddle.
    """
    for calls in case.facts.served:
        expected = case.expected.seconds(calls, (), ())
        rest = calls.seconds - explained.get(calls.kind, 0.0)
        number = min(
            calls.per_second * case.facts.window.seconds, case.expected.number(calls)
        )
        if not expected or rest <= 0 or number < ENOUGH_CALLS:
            continue
        times = min(rest / expected, _median_times(case, calls, rest))
        if times < case.expected.spread:
            continue
        # What findings explain is in some category, too.
        category, beyond = ("", 0.0) if rest < calls.seconds else _widest(case, calls)
        yield Unexplained(calls.kind, rest, expected, category, beyond)


def _median_times(case: Case, calls: Calls, rest: float) -> float:
    """Return how many times as long as expected the median is; 0 if unknown."""
    median, expected = calls.quantile(MEDIAN), case.expected.quantile(calls, MEDIAN)
    if median is None or expected is None:
        return 0.0
    return ratio(median * rest / calls.seconds, expected)


def _widest(case: Case, calls: Calls) -> tuple[str, float]:
    """Return the category with most time beyond the expected one, and that time."""
    beyond: dict[str, float] = defaultdict(float)
    for (phase, operation), seconds in calls.cells.items():
        usual = case.expected.seconds(calls, [phase], [operation]) or 0.0
        beyond[category_of((phase, operation))] += seconds - usual
    category = max(beyond, key=lambda name: beyond[name])
    return category, beyond[category]
