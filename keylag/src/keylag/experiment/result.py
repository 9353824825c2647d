"""`result.json`: everything that a run says, for programs."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any, Final

from keylag.experiment.analysis import (
    ALPHA,
    Comparison,
    Tally,
    by_arm,
    compare,
    tallies,
)
from keylag.experiment.journal import Folder
from keylag.experiment.plan import Plan
from keylag.experiment.samples import Row
from keylag.experiment.words import headline, still_needed, told_so_far

NOISY: Final = 0.1
"""An arm whose blocks spread by more than this share of their mean."""
FEW_IN_A_SLICE: Final = 4
"""With room for fewer requests, much of a slice is lost at its end."""
BUSY: Final = 0.2
"""Share of the processors' time that others used before the start."""


@dataclass(frozen=True)
class Result:
    """A run, judged."""

    plan: Plan
    seed: int
    ended: str
    blocks: int
    seconds: float
    comparisons: Sequence[Comparison]
    tallies: Mapping[str, Tally]
    warnings: Sequence[str]
    events: Sequence[str]
    environment: Mapping[str, Any]

    @property
    def deciding(self) -> list[Comparison]:
        """The comparisons of the method that the plan decides by."""
        method = self.plan.decision.method
        return [one for one in self.comparisons if one.method == method]

    @property
    def headlines(self) -> list[str]:
        """A sentence an arm."""
        measure, base = self.plan.decision.measure, self.plan.base
        if not self.plan.others:
            return [f"{base} alone: `keylag experiment compare` takes another run."]
        if not self.deciding:
            return ["No request was answered, so there is nothing to compare."]
        return [
            headline(one, base, measure, self.tallies.get(one.arm))
            for one in self.deciding
        ]

    @property
    def outlook(self) -> str:
        """What could be told by now, and how much longer it takes for the rest."""
        measure = self.plan.decision.measure
        seconds = self.seconds / self.blocks if self.blocks else math.inf
        needed = still_needed(self.deciding, measure, seconds)
        return " ".join(filter(None, (told_so_far(self.deciding, measure), needed)))


def of_folder(folder: Folder) -> Result:
    """Judge the run in a folder."""
    plan, journal = folder.plan(), folder.load()
    rows = folder.rows(journal)
    return Result(
        plan=plan,
        seed=journal.seed,
        ended=journal.ended,
        blocks=journal.blocks,
        seconds=journal.seconds,
        comparisons=compare(rows, plan.base, plan.others, plan.decision),
        tallies=tallies(rows),
        warnings=list(_doubts(rows, plan, journal.environment)),
        events=journal.events,
        environment=journal.environment,
    )


def _doubts(
    rows: Sequence[Row], plan: Plan, environment: Mapping[str, Any]
) -> list[str]:
    """Say when the machine was too noisy for the result to be worth much."""
    doubts = []
    if (before := environment["busy_before"]) > BUSY:
        doubts.append(
            f"The machine was busy before the start: {before:.0%} of its processors' "
            "time. Others who use it make every interval wider."
        )
    for arm, blocks in by_arm(rows, plan.decision.method).items():
        medians = [figures["p50"] for figures in blocks.values()]
        if len(medians) > 1 and (spread := stdev(medians) / fmean(medians)) > NOISY:
            doubts.append(
                f"The median of {arm} spread by {spread:.0%} from block to block; look "
                "at the drift, and measure again on a quieter machine."
            )
        room = plan.design.slice_seconds / fmean(medians)
        if not plan.elsewhere and room < FEW_IN_A_SLICE:
            doubts.append(
                f"A slice has room for {room:.1f} requests of {arm} after each other: "
                "much of it is lost, and some last into another arm's. Give the plan a "
                "longer `slice_seconds`."
            )
    return doubts


def as_json(result: Result) -> str:
    """Return the text of result.json; what is infinite is null there."""
    known = {
        "question": result.plan.question,
        "base": result.plan.base,
        "decision": result.plan.decision.model_dump(),
        "level": 1 - ALPHA,
        "seed": result.seed,
        "ended": result.ended,
        "blocks": result.blocks,
        "seconds": result.seconds,
        "headlines": result.headlines,
        "outlook": result.outlook,
        "comparisons": [asdict(one) for one in result.comparisons],
        "requests": {arm: asdict(tally) for arm, tally in result.tallies.items()},
        "warnings": result.warnings,
        "events": result.events,
        "environment": result.environment,
        "plan": result.plan.model_dump(),
    }
    return json.dumps(_finite(known), indent=2, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """Replace what JSON cannot say."""
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
