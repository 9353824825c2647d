"""Forecast from the noise so far how long the asked interval takes.

The asked interval is as wide as the smallest effect on each side.  How long it takes
depends on the spread of the values of rounds, and not on their mean.  A difference that
is far from zero needs no such interval, so its arm is in reach all the same.

The spread of few rounds is a rough estimate, which may be far too small by chance.
Quarters of rounds are more values, but share the restart of their round: half their
spread is what rounds would have if they did not.  The larger of both is the estimate.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy import stats

from keylag.experiment.analysis import ALPHA, figures_by_arm
from keylag.experiment.arm_pair import ArmPair, FiguresByRound
from keylag.experiment.estimates import Estimate, estimate_mean
from keylag.experiment.plan import MIN_ROUNDS, SECONDS_PER_MINUTE, Plan
from keylag.experiment.planned_looks import PlannedLooks
from keylag.experiment.run_folder import RunState
from keylag.experiment.samples import Row
from keylag.experiment.verdicts import CANNOT_TELL, NO_DIFFERENCE, rounds_needed

QUARTERS: Final = 4
MAX_ROUNDS: Final = 1_000_000
"""The longest forecast."""
CONFIDENCE: Final = 0.9
"""Confidence level of each of two lower bounds of a spread; the higher one counts."""
SURE: Final = 2.0

Values = tuple[Sequence[float], Sequence[float] | None]
"""The values of a measure, and of the control if there is one."""


@dataclass(frozen=True)
class Spread:
    """The standard deviation of the values of rounds."""

    estimate: float
    low: float
    """The higher one of two lower bounds, each at the level CONFIDENCE."""
    distance: float = 0.0
    """How far the mean is from 0 at least: by SURE of its standard errors less."""


@dataclass(frozen=True)
class ArmForecast:
    """When the interval of an arm is as narrow as asked."""

    arm: str
    spread: float
    """Of the logarithms of the ratios of rounds, without what the control explains."""
    rounds: int
    """Until the asked interval; if the run has fewer, of a longer one."""
    half_width: float
    """Of the interval after the last round, as a share of the base's figure."""
    out_of_reach: bool
    """Whether the run has too few rounds also at the lower bound of the spread.

    An arm that is further from the base than its last interval is wide is in reach.
    """


@dataclass(frozen=True)
class NoiseForecast:
    """When the intervals of all arms are as narrow as asked, by the rounds so far."""

    asked: float
    """Half the width of the asked interval, as a share of the base's figure."""
    round_seconds: float
    last_round: int
    """The rounds that the run has time for, at most those of its plan."""
    arms: Sequence[ArmForecast]
    """Without arms that have too few figures."""

    @property
    def is_out_of_reach(self) -> bool:
        """Whether no arm gets the asked interval."""
        if self.last_round < MIN_ROUNDS:
            return True
        return bool(self.arms) and all(one.out_of_reach for one in self.arms)

    def describe(self) -> Iterator[str]:
        """Yield a sentence for each arm that has a forecast."""
        if self.last_round < MIN_ROUNDS:
            yield (
                f"The run has {self.last_round} rounds of "
                f"{self.round_seconds:.0f} s; a verdict needs {MIN_ROUNDS}."
            )
            return
        for one in self.arms:
            yield f"{one.arm}: an interval of ± {_percent(self.asked)} {self._say(one)}"

    def _say(self, one: ArmForecast) -> str:
        if one.rounds <= self.last_round:
            return (
                f"takes about {one.rounds} of {self.last_round} rounds, "
                f"{self._minutes(one.rounds)}."
            )
        return (
            f"takes about {one.rounds} rounds, {self._minutes(one.rounds)}. The "
            f"{self.last_round} rounds of the run bring about "
            f"± {_percent(one.half_width)}."
        )

    def _minutes(self, rounds: int) -> str:
        minutes = rounds * self.round_seconds / SECONDS_PER_MINUTE
        return f"{max(1, minutes):.0f} min"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def forecast_noise(plan: Plan, state: RunState, rows: Sequence[Row]) -> NoiseForecast:
    """Forecast the rest of a run from its rounds so far."""
    round_seconds = state.seconds / state.rounds
    last = plan.rounds_at_pace(state.rounds, state.seconds, round_seconds)
    return NoiseForecast(
        asked=plan.decision.smallest,
        round_seconds=round_seconds,
        last_round=last,
        arms=_forecast_arms(rows, plan, max(MIN_ROUNDS, last)),
    )


def estimate_spread(rounds: Values, quarters: Values) -> Spread | None:
    """Return the spread and the distance of rounds, by them and by their quarters.

    Returns None if there are too few values.
    """
    found = [*_spreads(rounds, 1), *_spreads(quarters, QUARTERS)]
    if not found:
        return None
    spread = max(one.estimate for one in found)
    values, _ = rounds
    distance = 0.0
    if values:
        error = spread / math.sqrt(len(values))
        distance = abs(float(np.mean(values))) - SURE * error
    return Spread(spread, max(one.low for one in found), max(distance, 0.0))


def _spreads(values: Values, parts: int) -> Iterator[Spread]:
    outcome, control = values
    if len(outcome) < 2:  # noqa: PLR2004 - one value has no spread
        return
    centred = None if control is None else list(np.asarray(control) - np.mean(control))
    found = estimate_mean(outcome, centred)
    if math.isfinite(found.standard_error):
        spread = found.standard_error * math.sqrt(found.rounds / parts)
        freedom = found.degrees_of_freedom
        low = spread * math.sqrt(freedom / stats.chi2.ppf(CONFIDENCE, freedom))
        yield Spread(spread, low)


def _forecast_arms(rows: Sequence[Row], plan: Plan, last: int) -> list[ArmForecast]:
    method = plan.decision.method
    rounds = figures_by_arm(rows, method)
    quarters = figures_by_arm(split_into_quarters(rows), method)
    looks = PlannedLooks(last, ALPHA)
    forecasts = []
    for arm in plan.other_arms:
        by_round, by_quarter = (
            _values(figures, arm, plan, looks) for figures in (rounds, quarters)
        )
        if spread := estimate_spread(by_round, by_quarter):
            forecasts.append(_forecast(arm, spread, plan, looks))
    return forecasts


def split_into_quarters(rows: Sequence[Row]) -> list[Row]:
    """Return the measured rows, with the quarters of each round numbered as rounds."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if not row.warm_up:
            groups.setdefault((row.arm, row.round), []).append(row)
    return [
        replace(row, round=QUARTERS * row.round + QUARTERS * place // len(group))
        for group in groups.values()
        for place, row in enumerate(group)
    ]


def _values(
    figures: Mapping[str, FiguresByRound], arm: str, plan: Plan, looks: PlannedLooks
) -> Values:
    pair = ArmPair(
        base=figures.get(plan.base, {}),
        arm=figures.get(arm, {}),
        decision=plan.decision,
        looks=looks,
        arms=len(plan.other_arms),
        sound=True,
    )
    return pair.values(plan.decision.measure)


def _forecast(arm: str, spread: Spread, plan: Plan, looks: PlannedLooks) -> ArmForecast:
    asked = math.log1p(plan.decision.smallest)

    def rounds(spread: float) -> int | None:
        return rounds_needed(_after_one_round(spread), judge, looks.rounds)

    def judge(estimate: Estimate) -> str:
        return NO_DIFFERENCE if looks.half_width(estimate) < asked else CANNOT_TELL

    last = _after_one_round(spread.estimate).after(looks.rounds)
    return ArmForecast(
        arm=arm,
        spread=spread.estimate,
        rounds=rounds(spread.estimate) or _rounds_of_longer_run(last, looks, asked),
        half_width=math.expm1(looks.half_width(last)),
        out_of_reach=(
            rounds(spread.low) is None and spread.distance < looks.half_width(last)
        ),
    )


def _rounds_of_longer_run(last: Estimate, looks: PlannedLooks, asked: float) -> int:
    # Its last interval is wider than a usual one by about the same factor.
    factor = looks.half_width(last) / _usual_half_width(last)
    possible = range(looks.rounds + 1, MAX_ROUNDS)

    def is_narrow(rounds: int) -> bool:
        return factor * _usual_half_width(last.after(rounds)) < asked

    return bisect_left(possible, x=True, key=is_narrow) + possible.start


def _usual_half_width(estimate: Estimate) -> float:
    factor = stats.t.isf(ALPHA / 2, estimate.degrees_of_freedom)
    return float(factor) * estimate.standard_error


def _after_one_round(spread: float) -> Estimate:
    return Estimate(0.0, spread, 0, 1)
