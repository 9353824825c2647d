"""How long a run takes and what it can tell, before it begins."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

from keylag.experiment.analysis import ALPHA
from keylag.experiment.confidence_sequence import half_width_in_sd
from keylag.experiment.messages import MEASURE_NAMES, SECONDS_PER_MINUTE
from keylag.experiment.plan import Plan

RESTART_SECONDS: Final = 6.0
"""Of each arm in a round, to start its Keystone and its JMeter: what runs on two
processors took, within a third."""
EXAMPLE_SPREAD: Final = 0.03
"""Of a figure's difference from round to round, as a share; for an example."""


@dataclass(frozen=True)
class Forecast:
    """What to expect of a run once all arms have started."""

    rounds: int
    """That fit into its time, at most those of the plan."""
    round_seconds: float
    half_width_in_sd: float
    """Of the interval after these rounds, in standard deviations of a round."""
    min_minutes: float
    """With less nothing can be told."""

    @property
    def minutes(self) -> float:
        """How long these rounds take."""
        return self.rounds * self.round_seconds / SECONDS_PER_MINUTE


def forecast_plan(plan: Plan) -> Forecast:
    """Forecast a run of a plan; its first round is always run."""
    round_seconds = plan.round_load_seconds + len(plan.arms) * RESTART_SECONDS
    rounds_in_time = int(plan.design.minutes * SECONDS_PER_MINUTE / round_seconds)
    rounds = max(1, min(plan.design.rounds, rounds_in_time))
    alpha = ALPHA / max(1, len(plan.other_arms))
    min_rounds = next(
        number for number in count(1) if half_width_in_sd(number, alpha) < math.inf
    )
    return Forecast(
        rounds,
        round_seconds,
        half_width_in_sd(rounds, alpha),
        min_rounds * round_seconds / SECONDS_PER_MINUTE,
    )


def describe_plan(plan: Plan) -> Iterator[str]:
    """Say what will be run, for how long, and what it can tell."""
    found, design, decision = forecast_plan(plan), plan.design, plan.decision
    settings = plan.load.properties.items()
    yield plan.question
    yield f"Arms: {plan.base} (base), {', '.join(plan.other_arms) or 'no other'}"
    yield " ".join(["Load:", plan.load.plan, *(f"{name}={v}" for name, v in settings)])
    yield (
        f"Decided by: {MEASURE_NAMES[decision.measure]} of {decision.method}; a "
        f"difference below {_percent(decision.smallest)} does not matter"
    )
    yield (
        f"Rounds: {found.rounds} of about {found.round_seconds:.0f} s each, "
        f"{plan.round_load_seconds:.0f} s of it load"
    )
    yield (
        f"Time: about {found.minutes:.0f} min, at most {design.minutes:g}, "
        "once all arms have started; less if the answer is clear before"
    )
    if plan.other_arms:
        yield _describe_detectable(found)


def _describe_detectable(found: Forecast) -> str:
    if math.isinf(found.half_width_in_sd):
        return (
            "It can tell: nothing, from so few rounds; it takes "
            f"{math.ceil(found.min_minutes)} min or more"
        )
    return (
        f"It can tell: differences above {found.half_width_in_sd:.1f} times what they "
        f"spread by from round to round; if that is {_percent(EXAMPLE_SPREAD)}, those "
        f"above {_percent(found.half_width_in_sd * EXAMPLE_SPREAD)}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
