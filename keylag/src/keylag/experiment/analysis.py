"""From samples to verdicts: every arm against the base, paired by block.

A block's value is the arm's figure less the base's, both of the same block, so what
the machine did to both is not in it.  The relative difference is that by the base's
mean over all blocks.  With several arms, each comparison has its share of the 5 %
(Bonferroni: intervals hold together); the parts share it once more among them.

The rules on failures: a request that failed is in no figure; a block in which an arm
has too few good ones counts for no arm that needs it; an arm, or a base, of whose
requests of a method more than one in a hundred failed gets no verdict on it, because
those that went well are then not what was asked about.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from keylag.experiment.measures import (
    MEASURES,
    MORE_IS_BETTER,
    PARTS,
    figures,
    seconds_asked,
)
from keylag.experiment.plan import Decision
from keylag.experiment.samples import Row
from keylag.experiment.sequence import Interval, interval
from keylag.experiment.verdicts import CANNOT_TELL, blocks_needed, verdict
from keylag.server_timing import COUNTS

ALPHA: Final = 0.05
MOST_FAILED: Final = 0.01
"""Above this share of failed requests an arm is not judged."""

Figures = Mapping[int, Mapping[str, float]]
"""One arm's figures by block."""


@dataclass(frozen=True)
class Tally:
    """What became of an arm's requests after its warm-ups."""

    requests: int
    failed: int
    by_code: Mapping[str, int] = field(default_factory=dict)
    """Failed requests by the answer's code, or JMeter's word for none."""

    @property
    def is_sound(self) -> bool:
        """Whether so few failed that the others can be judged."""
        return self.requests > 0 and self.failed <= MOST_FAILED * self.requests


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
    blocks_needed: int | None
    """In all, until there is a verdict, if things stay as they are."""


@dataclass(frozen=True)
class Comparison:
    """An arm against the base, on one method."""

    arm: str
    method: str
    blocks: int
    """Blocks in which both have figures."""
    sound: bool
    measures: Mapping[str, Difference]
    parts: Mapping[str, Difference]
    counts: Mapping[str, Difference]


def tallies(rows: Iterable[Row]) -> dict[str, Tally]:
    """Count each arm's requests, warm-up left out."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if not row.warm_up:
            groups.setdefault(row.arm, []).append(row)
    return {arm: _tally(group) for arm, group in groups.items()}


def _tally(rows: Sequence[Row]) -> Tally:
    codes = Counter(row.code for row in rows if not row.success)
    return Tally(len(rows), codes.total(), dict(codes))


def methods(rows: Iterable[Row]) -> list[str]:
    """Return the methods that the load used, in the order they came."""
    return list(dict.fromkeys(row.method for row in rows))


def by_arm(rows: Iterable[Row], method: str) -> Mapping[str, Figures]:
    """Return the figures of every arm by block."""
    counted = [row for row in rows if not row.warm_up]
    asked = seconds_asked(counted)
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in counted:
        if row.method == method and row.success:
            groups.setdefault((row.arm, row.block), []).append(row)
    found: dict[str, dict[int, Mapping[str, float]]] = {}
    for (arm, block), group in groups.items():
        if (numbers := figures(group, asked[arm, block])) is not None:
            found.setdefault(arm, {})[block] = numbers
    return found


def compare(
    rows: Sequence[Row], base: str, arms: Sequence[str], decision: Decision
) -> list[Comparison]:
    """Compare every arm with the base, for each method of the load."""
    empty = Tally(0, 0)
    compared = []
    for method in methods(rows):
        found = by_arm(rows, method)
        counted = tallies(row for row in rows if row.method == method)
        for arm in arms:
            sound = all(counted.get(name, empty).is_sound for name in (base, arm))
            pair = Pair(found.get(base, {}), found.get(arm, {}), len(arms), sound)
            compared.append(pair.compared(arm, method, decision.smallest))
    return compared


@dataclass(frozen=True)
class Pair:
    """The figures of the base and of one of so many arms."""

    base: Figures
    arm: Figures
    arms: int
    sound: bool

    @property
    def blocks(self) -> list[int]:
        """The blocks that both have."""
        return sorted(set(self.base) & set(self.arm))

    def compared(self, arm: str, method: str, smallest: float) -> Comparison:
        """Compare all figures; a part matters by its share of the base's mean."""
        alpha = ALPHA / self.arms
        mean = fmean(self._of(self.base, "mean")) if self.blocks else 0.0
        return Comparison(
            arm=arm,
            method=method,
            blocks=len(self.blocks),
            sound=self.sound,
            measures=self._differences(MEASURES, smallest, alpha),
            parts=self._differences(PARTS, smallest, alpha / len(PARTS), mean),
            counts=self._differences(COUNTS, smallest, alpha),
        )

    def _of(self, figures: Figures, name: str) -> list[float]:
        return [figures[block][name] for block in self.blocks]

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
            if self.blocks and all(self._has(name))
        }

    def _has(self, name: str) -> Iterable[bool]:
        both = (self.base, self.arm)
        return (name in side[block] for side in both for block in self.blocks)

    def _difference(
        self, name: str, smallest: float, alpha: float, whole: float | None
    ) -> Difference:
        base, arm = self._of(self.base, name), self._of(self.arm, name)
        values = [there - here for here, there in zip(base, arm, strict=True)]
        unit = fmean(base) if whole is None else whole
        # A part that neither has is zero, not rounded to it.
        counted = name in COUNTS or not any(base + arm)
        absolute = interval(values, alpha, counted=counted)
        margin = smallest * unit
        judged = verdict(absolute, margin, more_is_better=name in MORE_IS_BETTER)
        return Difference(
            name=name,
            base=fmean(base),
            arm=fmean(arm),
            absolute=absolute,
            relative=absolute.scaled(1 / unit) if unit else None,
            verdict=judged if self.sound else CANNOT_TELL,
            blocks_needed=blocks_needed(values, margin, alpha) if self.sound else None,
        )
