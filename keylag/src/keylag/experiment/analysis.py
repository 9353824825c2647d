"""From samples to verdicts: every arm against the base, paired by round.

A round's value is the arm's figure less the base's, both of the same round, so what
the machine did to both is not in it.  The relative difference is that by the base's
mean over all rounds.  With several arms, each comparison has its share of the 5 %
(Bonferroni: intervals hold together); the parts share it once more among them.

The rules on failures: a request that failed is in no figure; a round in which an arm
has too few good ones counts for no arm that needs it; an arm, or a base, of whose
requests of a method more than one in a hundred failed gets no verdict on it, because
those that went well are then not what was asked about.
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
MAX_FAILED_SHARE: Final = 0.01
"""Above this share of failed requests an arm is not judged."""

FiguresByRound = Mapping[int, Mapping[str, float]]
"""One arm's figures by round."""


@dataclass(frozen=True)
class RequestCounts:
    """What became of an arm's requests after its warm-ups."""

    requests: int
    failed: int
    by_code: Mapping[str, int] = field(default_factory=dict)
    """Failed requests by the answer's code, or JMeter's word for none."""

    @property
    def is_sound(self) -> bool:
        """Whether so few failed that the others can be judged."""
        return self.requests > 0 and self.failed <= MAX_FAILED_SHARE * self.requests


@dataclass(frozen=True)
class Difference:
    """One figure of an arm against the base's; seconds, or a count."""

    name: str
    base: float
    arm: float
    absolute: Interval
    relative: Interval | None
    """By the base's figure, or a part's by the base's mean; None if that is zero."""
    verdict: str
    rounds_needed: int | None
    """In all, until there is a verdict, if things stay as they are."""


@dataclass(frozen=True)
class Comparison:
    """An arm against the base, on one method."""

    arm: str
    method: str
    rounds: int
    """Rounds in which both have figures."""
    sound: bool
    measures: Mapping[str, Difference]
    parts: Mapping[str, Difference]
    counts: Mapping[str, Difference]


def count_requests(rows: Iterable[Row]) -> dict[str, RequestCounts]:
    """Count each arm's requests, warm-up left out."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if not row.warm_up:
            groups.setdefault(row.arm, []).append(row)
    return {arm: _count_group(group) for arm, group in groups.items()}


def _count_group(rows: Sequence[Row]) -> RequestCounts:
    codes = Counter(row.code for row in rows if not row.success)
    return RequestCounts(len(rows), codes.total(), dict(codes))


def http_methods(rows: Iterable[Row]) -> list[str]:
    """Return the methods that the load used, in the order they came."""
    return list(dict.fromkeys(row.method for row in rows))


def figures_by_arm(rows: Iterable[Row], method: str) -> Mapping[str, FiguresByRound]:
    """Return the figures of every arm by round."""
    measured = [row for row in rows if not row.warm_up]
    seconds = seconds_under_load(measured)
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in measured:
        if row.method == method and row.success:
            groups.setdefault((row.arm, row.round), []).append(row)
    found: dict[str, dict[int, Mapping[str, float]]] = {}
    for (arm, round_number), group in groups.items():
        if (values := measure_round(group, seconds[arm, round_number])) is not None:
            found.setdefault(arm, {})[round_number] = values
    return found


def compare_arms(
    rows: Sequence[Row], base: str, arms: Sequence[str], decision: Decision
) -> list[Comparison]:
    """Compare every arm with the base, for each method of the load."""
    empty = RequestCounts(0, 0)
    compared = []
    for method in http_methods(rows):
        found = figures_by_arm(rows, method)
        counts = count_requests(row for row in rows if row.method == method)
        for arm in arms:
            sound = all(counts.get(name, empty).is_sound for name in (base, arm))
            pair = ArmPair(found.get(base, {}), found.get(arm, {}), len(arms), sound)
            compared.append(pair.compare(arm, method, decision.smallest))
    return compared


@dataclass(frozen=True)
class ArmPair:
    """The figures of the base and of one of so many arms."""

    base: FiguresByRound
    arm: FiguresByRound
    arms: int
    sound: bool

    @property
    def rounds(self) -> list[int]:
        """The rounds that both have."""
        return sorted(set(self.base) & set(self.arm))

    def compare(self, arm: str, method: str, smallest: float) -> Comparison:
        """Compare all figures; a part matters by its share of the base's mean."""
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
            if self.rounds and all(self._in_every_round(name))
        }

    def _in_every_round(self, name: str) -> Iterable[bool]:
        both = (self.base, self.arm)
        return (
            name in side[round_number] for side in both for round_number in self.rounds
        )

    def _difference(
        self, name: str, smallest: float, alpha: float, whole: float | None
    ) -> Difference:
        base, arm = self._values(self.base, name), self._values(self.arm, name)
        values = [there - here for here, there in zip(base, arm, strict=True)]
        unit = fmean(base) if whole is None else whole
        # A part that neither has is zero, not rounded to it.
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
