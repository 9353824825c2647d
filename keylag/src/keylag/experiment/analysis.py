"""Compare every arm with the base arm, from samples to verdicts.

The measured values of a comparison are the differences between the arm and the base
in the same round.  Pairing removes what the machine did to both arms in that round.
Relative differences are divided by the base's mean over all rounds.  The error
probability of 5 % is shared by all comparisons of a plan, and within one comparison by
the parts of the mean (Bonferroni), so that all intervals hold together.

Failed requests are handled like this:

- Every measure leaves them out.
- A round in which an arm has too few successful requests does not count for it.
- There is no verdict on a method when more than 1 % of its requests failed, in the arm
  or in the base: the successful ones would not be representative.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from keylag.experiment.confidence_sequence import Interval, confidence_interval
from keylag.experiment.measures import (
    HIGHER_IS_BETTER,
    MEASURES,
    PARTS,
    measure_round,
    seconds_under_load,
)
from keylag.experiment.plan import Decision
from keylag.experiment.samples import Row
from keylag.experiment.verdicts import CANNOT_TELL, rounds_needed, verdict
from keylag.server_timing import COUNTS

ALPHA: Final = 0.05
"""Probability that any interval of a comparison misses the true value."""
MAX_FAILED_SHARE: Final = 0.01
"""An arm with a larger share of failed requests gets no verdict."""

FiguresByRound = Mapping[int, Mapping[str, float]]
"""The figures of one arm, by round number and name."""


@dataclass(frozen=True)
class RequestCounts:
    """How many requests of an arm were sent and failed, without warm-up."""

    requests: int
    failed: int
    by_code: Mapping[str, int] = field(default_factory=dict)
    """Failed requests by status code, or by JMeter's name of the network error."""

    @property
    def is_sound(self) -> bool:
        """Whether few enough requests failed for a verdict."""
        return self.requests > 0 and self.failed <= MAX_FAILED_SHARE * self.requests


@dataclass(frozen=True)
class Difference:
    """How one figure of an arm differs from the base; in seconds, or a count."""

    name: str
    base: float
    arm: float
    absolute: Interval
    relative: Interval | None
    """As a share of the base's figure; of its mean for parts; None if that is zero."""
    verdict: str
    rounds_needed: int | None
    """Total rounds until a verdict, at the present mean and spread; None if unknown."""


@dataclass(frozen=True)
class Comparison:
    """One arm compared with the base, for one HTTP method."""

    arm: str
    method: str
    rounds: int
    """Rounds in which both arms have figures."""
    sound: bool
    """Whether few enough requests failed, in both arms, for a verdict."""
    measures: Mapping[str, Difference]
    parts: Mapping[str, Difference]
    counts: Mapping[str, Difference]


def count_requests(rows: Iterable[Row]) -> dict[str, RequestCounts]:
    """Count the requests of each arm, without warm-up."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if not row.warm_up:
            groups.setdefault(row.arm, []).append(row)
    return {arm: _count_group(group) for arm, group in groups.items()}


def _count_group(rows: Sequence[Row]) -> RequestCounts:
    codes = Counter(row.code for row in rows if not row.success)
    return RequestCounts(len(rows), codes.total(), dict(codes))


def http_methods(rows: Iterable[Row]) -> list[str]:
    """Return the HTTP methods of the load, in order of appearance."""
    return list(dict.fromkeys(row.method for row in rows))


def figures_by_arm(rows: Iterable[Row], method: str) -> Mapping[str, FiguresByRound]:
    """Return the figures of every arm and round for one HTTP method."""
    measured = [row for row in rows if not row.warm_up]
    seconds = seconds_under_load(measured)
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in measured:
        if row.method == method and row.success:
            groups.setdefault((row.arm, row.round), []).append(row)
    figures: dict[str, dict[int, Mapping[str, float]]] = {}
    for (arm, round_number), group in groups.items():
        values = measure_round(group, seconds[arm, round_number])
        if values is not None:
            figures.setdefault(arm, {})[round_number] = values
    return figures


def compare_arms(
    rows: Sequence[Row], base: str, arms: Sequence[str], decision: Decision
) -> list[Comparison]:
    """Compare each arm with the base, for each HTTP method of the load."""
    no_requests = RequestCounts(0, 0)
    comparisons = []
    for method in http_methods(rows):
        figures = figures_by_arm(rows, method)
        counts = count_requests(row for row in rows if row.method == method)
        for arm in arms:
            sound = all(counts.get(name, no_requests).is_sound for name in (base, arm))
            pair = ArmPair(
                figures.get(base, {}), figures.get(arm, {}), len(arms), sound
            )
            comparisons.append(pair.compare(arm, method, decision.smallest))
    return comparisons


@dataclass(frozen=True)
class ArmPair:
    """The figures of the base and of one of `arms` other arms."""

    base: FiguresByRound
    arm: FiguresByRound
    arms: int
    sound: bool

    @property
    def rounds(self) -> list[int]:
        """The numbers of the rounds in which both arms have figures."""
        return sorted(set(self.base) & set(self.arm))

    def compare(self, arm: str, method: str, smallest: float) -> Comparison:
        """Compare all figures.

        `smallest` is the smallest effect, as a share of the base's figure.  For parts
        it is a share of the base's mean.
        """
        alpha = ALPHA / self.arms
        mean = fmean(self._values(self.base, "mean")) if self.rounds else 0.0
        return Comparison(
            arm=arm,
            method=method,
            rounds=len(self.rounds),
            sound=self.sound,
            measures=self._differences(MEASURES, smallest, alpha),
            parts=self._differences(PARTS, smallest, alpha / len(PARTS), mean),
            counts=self._differences(COUNTS, smallest, alpha),
        )

    def _values(self, figures: FiguresByRound, name: str) -> list[float]:
        return [figures[round_number][name] for round_number in self.rounds]

    def _differences(
        self,
        names: Iterable[str],
        smallest: float,
        alpha: float,
        whole: float | None = None,
    ) -> dict[str, Difference]:
        return {
            name: self._difference(name, smallest, alpha, whole)
            for name in names
            if self.rounds and self._is_in_every_round(name)
        }

    def _is_in_every_round(self, name: str) -> bool:
        both = (self.base, self.arm)
        return all(name in side[number] for side in both for number in self.rounds)

    def _difference(
        self, name: str, smallest: float, alpha: float, whole: float | None
    ) -> Difference:
        base, arm = self._values(self.base, name), self._values(self.arm, name)
        values = [there - here for here, there in zip(base, arm, strict=True)]
        unit = fmean(base) if whole is None else whole
        # A part that neither arm has is exactly zero, not zero by rounding.
        exact = name in COUNTS or not any(base + arm)
        absolute = confidence_interval(values, alpha, exact=exact)
        margin = smallest * unit
        judged = verdict(absolute, margin, higher_is_better=name in HIGHER_IS_BETTER)
        return Difference(
            name=name,
            base=fmean(base),
            arm=fmean(arm),
            absolute=absolute,
            relative=absolute.scaled(1 / unit) if unit else None,
            verdict=judged if self.sound else CANNOT_TELL,
            rounds_needed=rounds_needed(values, margin, alpha) if self.sound else None,
        )
