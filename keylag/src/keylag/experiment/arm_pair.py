"""The differences between an arm and the base arm."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Final

from keylag.experiment.estimates import (
    Estimate,
    estimate_mean,
    explained_share,
)
from keylag.experiment.interval import Interval
from keylag.experiment.measures import HIGHER_IS_BETTER, MEASURES, PARTS
from keylag.experiment.plan import Decision
from keylag.experiment.planned_looks import PlannedLooks
from keylag.experiment.ratios import contributions, log_ratios, logarithmic_mean
from keylag.experiment.verdicts import CANNOT_TELL, CONTROL, rounds_needed, verdict
from keylag.server_timing import COUNTS

NO_CHANGE: Final = Interval(0.0, 0.0, 0.0)

FiguresByRound = Mapping[int, Mapping[str, float]]
"""The figures of one arm, by round number and name."""


@dataclass(frozen=True)
class Difference:
    """How one figure of an arm differs from the base.

    In seconds, in requests per second, or a count.
    """

    name: str
    base: float
    arm: float
    absolute: Interval
    relative: Interval | None
    """As a share of the base's figure; of its mean for parts; None if that is zero."""
    differs: bool
    """Whether the interval excludes zero at the level that all comparisons share."""
    verdict: str
    rounds_needed: int | None
    """Total rounds until a verdict, at the present mean and spread; None if unknown."""


@dataclass(frozen=True)
class Control:
    """The part of the mean that the plan declares to be the same in all arms."""

    name: str
    relative: Interval
    """How it differs between the arms, as a share of the base's mean."""
    explained: float
    """Share of the variance of the mean between rounds that goes with it."""
    unadjusted: Interval
    """How the mean differs without an adjustment, as a share of the base's mean."""

    @property
    def is_used(self) -> bool:
        """Whether it may be the same in both arms."""
        return self.relative.holds_zero


@dataclass(frozen=True)
class Figure:
    """One figure of both arms, by round, and what its values mean."""

    name: str
    base: Sequence[float]
    arm: Sequence[float]
    values: Sequence[float]
    """What an interval is made for."""
    absolute: Callable[[Interval], Interval]
    """Turns an interval of the values into one of the figure."""
    unit: float
    """The figure that relative differences are a share of."""
    exact: bool = False


@dataclass(frozen=True)
class ArmPair:
    """The figures of the base and of another arm."""

    base: FiguresByRound
    arm: FiguresByRound
    decision: Decision
    looks: PlannedLooks
    """At one comparison."""
    arms: int
    """That share the error probability of claims of a difference."""
    sound: bool

    @cached_property
    def rounds(self) -> list[int]:
        """The numbers of the rounds in which both arms have figures."""
        return sorted(set(self.base) & set(self.arm))

    def values(self, measure: str) -> tuple[Sequence[float], Sequence[float] | None]:
        """Return the values of a measure by round, and those of the control in use."""
        if not self._common([measure]):
            return [], None
        if measure in PARTS:
            return self._contributions(measure), self._control_values
        return self._ratio(measure).values, self._control_values

    def measures(self) -> dict[str, Difference]:
        """Compare the measures, as ratios, and the part that the plan decides by."""
        measure = self.decision.measure
        found = self._differences(map(self._ratio, self._common(MEASURES)))
        deciding = [name for name in self._common(PARTS) if name == measure]
        return found | self._differences(map(self._contribution, deciding))

    def parts(self) -> dict[str, Difference]:
        """Compare the parts of the mean by their contributions to its ratio."""
        figures = map(self._contribution, self._common(PARTS))
        found = self._differences(figures, claims=len(PARTS))
        if self.control and self.control.is_used:
            name = self.control.name
            found[name] = replace(
                found[name],
                absolute=NO_CHANGE,
                relative=NO_CHANGE,
                differs=False,
                verdict=CONTROL,
                rounds_needed=None,
            )
        return found

    def counts(self) -> dict[str, Difference]:
        """Compare the counts, which may be zero and have no noise of the machine."""
        return self._differences(map(self._count, self._common(COUNTS)))

    @cached_property
    def control(self) -> Control | None:
        """The control of the plan, if every round has it."""
        name = self.decision.control
        if not name or name not in self._common(PARTS):
            return None
        values = self._contributions(name)
        if not any(values):
            return None  # A validation has no password hash.
        # Chance may move a control, which is needed then: so arms share this error.
        shared = replace(self.looks, alpha=self.looks.alpha / self.arms)
        means = self._ratio("mean").values
        return Control(
            name,
            shared.interval(estimate_mean(values)).mapped(math.expm1),
            explained_share(means, values),
            self.looks.interval(estimate_mean(means)).mapped(math.expm1),
        )

    @cached_property
    def _control_values(self) -> Sequence[float] | None:
        control = self.control
        if control is None or not control.is_used:
            return None
        return self._contributions(control.name)

    def _common(self, names: Sequence[str] | Mapping[str, object]) -> list[str]:
        # The figures that both arms have in every round.
        both = (self.base, self.arm)
        return [
            name
            for name in names
            if self.rounds
            and all(name in side[number] for side in both for number in self.rounds)
        ]

    def _by_round(self, name: str) -> tuple[list[float], list[float]]:
        base, arm = (
            [side[number][name] for number in self.rounds]
            for side in (self.base, self.arm)
        )
        return base, arm

    def _ratio(self, name: str) -> Figure:
        base, arm = self._by_round(name)
        unit = fmean(base)

        def absolute(found: Interval) -> Interval:
            return found.mapped(lambda value: unit * math.expm1(value))

        return Figure(name, base, arm, log_ratios(base, arm), absolute, unit)

    def _contributions(self, name: str) -> list[float]:
        return contributions(self._by_round(name), self._by_round("mean"))

    def _contribution(self, name: str) -> Figure:
        base, arm = self._by_round(name)
        unit = fmean(self._by_round("mean")[0])
        mean = estimate_mean(self._ratio("mean").values, self._control_values).mean
        scale = logarithmic_mean(unit, unit * math.exp(mean))

        def absolute(found: Interval) -> Interval:
            # A part is not shortened by more than itself.
            return found.scaled(scale).at_least(min(0.0, -fmean(base)))

        # A part that neither arm has is exactly zero, not zero by rounding.
        exact = not any(base + arm)
        values = self._contributions(name)
        return Figure(name, base, arm, values, absolute, unit, exact)

    def _count(self, name: str) -> Figure:
        base, arm = self._by_round(name)
        values = [there - here for here, there in zip(base, arm, strict=True)]
        unit = fmean(base)

        def absolute(found: Interval) -> Interval:
            # No arm has less than none.
            return found.at_least(-unit)

        return Figure(name, base, arm, values, absolute, unit, exact=True)

    def _differences(
        self, figures: Iterable[Figure], claims: int = 1
    ) -> dict[str, Difference]:
        # `claims` figures of each arm share the error probability.
        alpha = self.looks.alpha / self.arms / claims
        shared = replace(self.looks, alpha=alpha)
        return {figure.name: self._difference(figure, shared) for figure in figures}

    def _difference(self, figure: Figure, shared: PlannedLooks) -> Difference:
        # A count has no noise of the machine that a control could explain.
        control = None if figure.exact else self._control_values
        estimate = estimate_mean(figure.values, control)

        def interval(estimate: Estimate, looks: PlannedLooks) -> Interval:
            return figure.absolute(looks.interval(estimate, exact=figure.exact))

        def judge(estimate: Estimate) -> str:
            return verdict(
                interval(estimate, self.looks),
                self.decision.smallest * figure.unit,
                shared=interval(estimate, shared),
                higher_is_better=figure.name in HIGHER_IS_BETTER,
            )

        absolute = interval(estimate, self.looks)
        lasts = (self.looks.rounds, self.looks.last_forecast)
        return Difference(
            name=figure.name,
            base=fmean(figure.base),
            arm=fmean(figure.arm),
            absolute=absolute,
            relative=absolute.scaled(1 / figure.unit) if figure.unit else None,
            differs=self.sound and not interval(estimate, shared).holds_zero,
            verdict=judge(estimate) if self.sound else CANNOT_TELL,
            rounds_needed=rounds_needed(estimate, judge, *lasts)
            if self.sound
            else None,
        )
