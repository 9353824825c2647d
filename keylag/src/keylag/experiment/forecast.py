"""Forecast how long a run takes and which differences it can detect."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from keylag.experiment.analysis import ALPHA
from keylag.experiment.estimates import Estimate
from keylag.experiment.measures import PARTS
from keylag.experiment.messages import MEASURE_NAMES, describe_arms_and_load
from keylag.experiment.plan import MIN_ROUNDS, SECONDS_PER_MINUTE, Plan
from keylag.experiment.planned_looks import PlannedLooks

EXAMPLE_SPREAD: Final = 0.03
"""Spread of a difference between rounds, as a share; the example in the output."""
EARLY_END: Final = "; the run ends earlier when every arm has a verdict"


@dataclass(frozen=True)
class Forecast:
    """What to expect of a run, from the time when all arms have started."""

    rounds: int
    """The rounds that fit into the time limit, at most those of the plan."""
    round_seconds: float
    half_width_in_sd: float
    """Half width of the interval after these rounds, in standard deviations."""
    min_minutes: float
    """The shortest run that can detect a difference."""

    @property
    def minutes(self) -> float:
        """The duration of all rounds."""
        return self.rounds * self.round_seconds / SECONDS_PER_MINUTE


def forecast_plan(plan: Plan) -> Forecast:
    """Forecast a run of a plan, which has one round at least."""
    rounds = max(1, plan.rounds_in_time)
    looks = PlannedLooks(plan.planned_rounds, ALPHA / max(1, len(plan.other_arms)))
    spread_of_one = Estimate(0.0, 1 / math.sqrt(rounds), rounds - 1, rounds)
    return Forecast(
        rounds,
        plan.round_seconds,
        looks.half_width(spread_of_one),
        MIN_ROUNDS * plan.round_seconds / SECONDS_PER_MINUTE,
    )


def describe_plan(plan: Plan) -> Iterator[str]:
    """Yield lines about the arms, the load, the duration and the sensitivity."""
    forecast, design, decision = forecast_plan(plan), plan.design, plan.decision
    whole = " of the mean" if decision.measure in PARTS else ""
    yield plan.question
    yield from describe_arms_and_load(plan)
    yield (
        f"Decision: {MEASURE_NAMES[decision.measure]} of {decision.method}; "
        f"differences below {_percent(decision.smallest)}{whole} do not matter"
    )
    yield (
        f"Rounds: {forecast.rounds} of about {forecast.round_seconds:.0f} s each, "
        f"{plan.round_load_seconds:.0f} s of it load"
    )
    yield (
        f"Time: about {forecast.minutes:.0f} min, at most {design.minutes:g}, after "
        f"all arms have started{EARLY_END if design.ends_at_verdict else ''}"
    )
    if plan.other_arms:
        yield _describe_detectable(forecast)


def _describe_detectable(forecast: Forecast) -> str:
    if math.isinf(forecast.half_width_in_sd):
        return (
            "Found: no difference, with so few rounds; a verdict takes "
            f"{math.ceil(forecast.min_minutes)} min or more"
        )
    return (
        f"Found in half of the runs: a difference of {forecast.half_width_in_sd:.1f} "
        "times the spread between rounds; for example, "
        f"{_percent(forecast.half_width_in_sd * EXAMPLE_SPREAD)} with a spread of "
        f"{_percent(EXAMPLE_SPREAD)}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
