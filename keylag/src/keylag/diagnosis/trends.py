"""How the evidence of findings went over the window.

Evidence that is a query's sum is asked again for each time.  All other evidence is
what the rule says of a short slice that ends then; where it says nothing, the line has
a gap.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from keylag.diagnosis.case import Case
from keylag.diagnosis.facts import (
    OF_CALLS,
    Facts,
    MissingSourceError,
    Window,
    make_calls,
)
from keylag.diagnosis.measurements import MEASUREMENTS
from keylag.diagnosis.prometheus import Prometheus, Sample
from keylag.diagnosis.promql import is_sum
from keylag.diagnosis.ranking import Diagnosis
from keylag.diagnosis.reading import fill
from keylag.diagnosis.rule import Evidence, Rule

TIMES: Final = 41
SHORTEST_SECONDS: Final = 60.0
"""A shorter slice may have too few scrapes for a rate."""
SLICES: Final = 10
"""A slice is this part of the window, so that a line shows when something changed."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Trends:
    """Cases of short slices of a window, by the time at which each ends."""

    slices: Mapping[float, Case]

    def lines(self, rule: Rule, evidence: Evidence, whole: Facts) -> list[Points]:
        """Return the evidence over time, as lines between its gaps."""
        if is_sum(evidence, whole):
            values = [_sum(case, evidence) for case in self.slices.values()]
        else:
            values = [_judged(rule, evidence, case) for case in self.slices.values()]
        return list(_without_gaps(list(self.slices), values))


def read_trends(server: Prometheus, diagnosis: Diagnosis, matchers: str = "") -> Trends:
    """Return the slices, with what the rules of the findings ask."""
    window, known = diagnosis.facts.window, diagnosis.facts.queries
    asked = (name for one in diagnosis.findings for name in one.rule.asks)
    names = [name for name in dict.fromkeys([*OF_CALLS, *asked]) if name in known]
    length = max(window.seconds / SLICES, SHORTEST_SECONDS)
    times = [
        window.start + number * window.seconds / (TIMES - 1) for number in range(TIMES)
    ]
    queries = {
        name: fill(MEASUREMENTS[name].promql, length, matchers) for name in names
    }
    found = server.query_range_all(queries, times)
    slices = {}
    for at in times:
        answers = {name: found[name][at] for name in names}
        facts = _slice(diagnosis.facts, answers, Window(at - length, at))
        slices[at] = Case(facts, diagnosis.case.expected)
    return Trends(slices)


def _slice(
    whole: Facts, answers: Mapping[str, Sequence[Sample]], window: Window
) -> Facts:
    """Return the facts of a slice; what Prometheus was not asked is that of all."""
    lasting = {
        name: value
        for name, value in whole.answers.items()
        if name not in whole.queries
    }
    return replace(
        whole,
        window=window,
        calls=make_calls(answers, window),
        answers={**lasting, **answers},
    )


def _sum(case: Case, evidence: Evidence) -> float | None:
    known = case.facts.answers.get(evidence.measurement)
    return case.facts.number(evidence.measurement) if known else None


def _judged(rule: Rule, evidence: Evidence, case: Case) -> float | None:
    try:
        judged = rule.judge(case)
    except MissingSourceError:
        return None
    if isinstance(judged, str):
        return None
    same = (one.value for one in judged.evidence if one.text == evidence.text)
    return next(same, None)


def _without_gaps(
    times: Sequence[float], values: Sequence[float | None]
) -> Iterator[Points]:
    line: list[tuple[float, float]] = []
    for at, value in zip(times, values, strict=True):
        if value is not None and math.isfinite(value):
            line.append((at, value))
        elif line:
            yield line
            line = []
    if line:
        yield line
