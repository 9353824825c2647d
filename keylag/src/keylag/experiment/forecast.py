"""How long a run takes and what it can tell, before it begins."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

from keylag.experiment.analysis import ALPHA
from keylag.experiment.plan import Plan
from keylag.experiment.sequence import reach
from keylag.experiment.words import MEASURE_NAMES, MINUTE

RENEWAL_SECONDS: Final = 6.0
"""Of each arm in a block, to start its Keystone and its JMeter: what runs on two
processors took, within a third."""
TYPICAL_SPREAD: Final = 0.03
"""Of a figure's difference from block to block, as a share; for an example."""


@dataclass(frozen=True)
class Forecast:
    """What to expect of a run once all arms have started."""

    blocks: int
    """That fit into its time, at most those of the plan."""
    block_seconds: float
    reach: float
    """Of the interval after these blocks, in standard deviations of a block."""
    least_minutes: float
    """With less nothing can be told."""

    @property
    def minutes(self) -> float:
        """How long these blocks take."""
        return self.blocks * self.block_seconds / MINUTE


def of_plan(plan: Plan) -> Forecast:
    """Forecast a run of a plan; its first block is always run."""
    block = plan.load_seconds + len(plan.arms) * RENEWAL_SECONDS
    fit = int(plan.design.minutes * MINUTE / block)
    blocks = max(1, min(plan.design.blocks, fit))
    alpha = ALPHA / max(1, len(plan.others))
    fewest = next(number for number in count(1) if reach(number, alpha) < math.inf)
    return Forecast(blocks, block, reach(blocks, alpha), fewest * block / MINUTE)


def lines(plan: Plan) -> Iterator[str]:
    """Say what will be run, for how long, and what it can tell."""
    found, design, decision = of_plan(plan), plan.design, plan.decision
    settings = plan.load.properties.items()
    yield plan.question
    yield f"Arms: {plan.base} (base), {', '.join(plan.others) or 'no other'}"
    yield " ".join(["Load:", plan.load.plan, *(f"{name}={v}" for name, v in settings)])
    yield (
        f"Decided by: {MEASURE_NAMES[decision.measure]} of {decision.method}; a "
        f"difference below {_per_cent(decision.smallest)} does not matter"
    )
    yield (
        f"Blocks: {found.blocks} of about {found.block_seconds:.0f} s each, "
        f"{plan.load_seconds:.0f} s of it load"
    )
    yield (
        f"Time: about {found.minutes:.0f} min, at most {design.minutes:g}, "
        "once all arms have started; less if the answer is clear before"
    )
    if plan.others:
        yield _told(found)


def _told(found: Forecast) -> str:
    if math.isinf(found.reach):
        return (
            "It can tell: nothing, from so few blocks; it takes "
            f"{math.ceil(found.least_minutes)} min or more"
        )
    return (
        f"It can tell: differences above {found.reach:.1f} times what they spread by "
        f"from block to block; if that is {_per_cent(TYPICAL_SPREAD)}, those above "
        f"{_per_cent(found.reach * TYPICAL_SPREAD)}"
    )


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"
