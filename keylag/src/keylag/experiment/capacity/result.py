"""What the ramps say about each arm, and `result.json` for programs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from statistics import geometric_mean
from typing import Any, Final

from keylag.experiment.capacity.open_load import Trial
from keylag.experiment.capacity.run import ArmRamp, CapacityRun
from keylag.experiment.result import finite

BASE: Final = "base"
MORE: Final = "holds more"
LESS: Final = "holds less"
NO_DIFFERENCE: Final = "no clear difference"
CANNOT_TELL: Final = "cannot tell: fewer than four repeats"
MIN_REPEATS: Final = 4
"""Of each arm.  Two equal arms with four ramps each are apart in 2 of 70 orders."""


@dataclass(frozen=True)
class RateRange:
    """The geometric mean of the repeats, the lowest and the highest."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class ArmCapacity:
    """What the repeats say about an arm."""

    arm: str
    held: RateRange | None
    """The highest rate that was held, in requests per second; None if none was."""
    ratio: RateRange | None
    """To the base in the same repeat; None if no repeat has both."""
    verdict: str
    """On this arm alone; several arms share no error probability."""


def compare_capacities(run: CapacityRun) -> list[ArmCapacity]:
    """Compare the arms with the base, which comes first."""
    base = _by_repeat(run, run.plan.base)
    return [
        _compare(arm, base, _by_repeat(run, arm), is_base=arm == run.plan.base)
        for arm in run.plan.arm_names
    ]


def _by_repeat(run: CapacityRun, arm: str) -> dict[int, ArmRamp]:
    # A ramp that met a problem says nothing about the arm.
    return {
        ramp.repeat: ramp for ramp in run.ramps if ramp.arm == arm and ramp.complete
    }


def _compare(
    arm: str,
    base: Mapping[int, ArmRamp],
    found: Mapping[int, ArmRamp],
    *,
    is_base: bool,
) -> ArmCapacity:
    pairs = [(base[repeat], found[repeat]) for repeat in base.keys() & found.keys()]
    ratios = (one.held / of.held for of, one in pairs if one.held and of.held)
    return ArmCapacity(
        arm,
        held=_range(ramp.held for ramp in found.values() if ramp.held),
        ratio=_range(ratios),
        verdict=BASE if is_base else _verdict([*base.values()], [*found.values()]),
    )


def _range(values: Iterable[float]) -> RateRange | None:
    found = list(values)
    if not found:
        return None
    return RateRange(geometric_mean(found), min(found), max(found))


def _verdict(base: Sequence[ArmRamp], arm: Sequence[ArmRamp]) -> str:
    """Say whether all ramps of one held rates that no ramp of the other held."""
    if min(len(base), len(arm)) < MIN_REPEATS:
        return CANNOT_TELL
    if _exceeds(arm, base):
        return MORE
    if _exceeds(base, arm):
        return LESS
    return NO_DIFFERENCE


def _exceeds(some: Sequence[ArmRamp], others: Sequence[ArmRamp]) -> bool:
    return all(
        one.held and other.not_held and one.held >= other.not_held
        for one, other in product(some, others)
    )


def trial_at(ramp: ArmRamp, rate: float | None) -> Trial | None:
    """Return the last trial of a rate; None if there is none."""
    found = [trial for trial in ramp.trials if trial.rate == rate]
    return found[-1] if found else None


def to_json(run: CapacityRun, environment: Mapping[str, Any]) -> str:
    """Return the text of result.json, with null for infinite values."""
    content = {
        "question": run.plan.question,
        "base": run.plan.base,
        "settings": asdict(run.settings),
        "seed": run.seed,
        "ended": run.ended,
        "seconds": run.seconds,
        "arms": [asdict(one) for one in compare_capacities(run)],
        "ramps": [asdict(one) for one in run.ramps],
        "events": run.events,
        "environment": environment,
        "plan": run.plan.model_dump(),
    }
    return json.dumps(finite(content), indent=2, allow_nan=False) + "\n"
