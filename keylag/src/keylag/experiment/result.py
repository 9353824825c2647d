"""Analyse a run, and write the analysis as `result.json` for programs."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any, Final

from keylag.experiment.analysis import (
    ALPHA,
    Comparison,
    RequestCounts,
    compare_arms,
    count_requests,
    figures_by_arm,
)
from keylag.experiment.idle_clients import find_idle_clients
from keylag.experiment.load_monitor import Disturbance
from keylag.experiment.messages import detectable_difference, headline, remaining_time
from keylag.experiment.noise_check import (
    NoiseCheck,
    load_disturbances,
    load_noise_check,
)
from keylag.experiment.obstacles import find_disturbed_rounds, find_obstacles
from keylag.experiment.plan import Plan
from keylag.experiment.run_folder import RunFolder
from keylag.experiment.samples import Row
from keylag.experiment.saturation import find_saturated_arms

MAX_SPREAD: Final = 0.1
"""Warn if the medians of an arm spread by more than this share of their mean."""
MIN_REQUESTS_PER_SLICE: Final = 4
"""Warn if a slice has room for fewer requests: its idle end is a large share."""


@dataclass(frozen=True)
class Result:
    """The analysis of a run."""

    plan: Plan
    seed: int
    ended: str
    rounds: int
    planned_rounds: int
    """That the intervals are made for."""
    plan_changes: Sequence[tuple[int, int]]
    """The rounds done until each change of it, and those planned before."""
    decided_arms: Sequence[str]
    """That left the run with their verdict, in this order."""
    seconds: float
    pace_seconds: float
    """How long another round would take; 0 without a round."""
    comparisons: Sequence[Comparison]
    request_counts: Mapping[str, RequestCounts]
    warnings: Sequence[str]
    events: Sequence[str]
    snapshot_url: str
    environment: Mapping[str, Any]
    noise_check: NoiseCheck | None
    """What the first rounds said about the noise; None if they have not ended."""
    disturbances: Sequence[Disturbance]
    """What happened to the machine under the load of each round."""

    @property
    def deciding_comparisons(self) -> list[Comparison]:
        """The comparisons for the HTTP method that the plan decides by."""
        method = self.plan.decision.method
        return [one for one in self.comparisons if one.method == method]

    @property
    def parts_by_arm(self) -> Mapping[str, Mapping[str, Mapping[str, float]]]:
        """The seconds of each part of the mean, by HTTP method, arm and part.

        Those of the base are its mean over the rounds that it has with the first arm.
        """
        found: dict[str, dict[str, dict[str, float]]] = {}
        for one in self.comparisons:
            if one.parts:
                arms = found.setdefault(one.method, {})
                base = {name: part.base for name, part in one.parts.items()}
                arms.setdefault(self.plan.base, base)
                arms[one.arm] = {name: part.arm for name, part in one.parts.items()}
        return found

    @property
    def headlines(self) -> list[str]:
        """One sentence per arm."""
        decision, base = self.plan.decision, self.plan.base
        if not self.plan.other_arms:
            advice = "Compare it with another run: `keylag experiment compare`."
            return [f"The plan has one arm, {base}. {advice}"]
        if not self.deciding_comparisons:
            return ["Keystone answered no request, so there is nothing to compare."]
        return [
            headline(one, base, decision, self.request_counts.get(one.arm))
            for one in self.deciding_comparisons
        ]

    @property
    def outlook(self) -> str:
        """The detectable difference, and the time until every arm has a verdict."""
        measure = self.plan.decision.measure
        answered = {arm for arm, one in self.request_counts.items() if one.successful}
        compared = [one for one in self.deciding_comparisons if one.arm in answered]
        sentences = (
            detectable_difference(compared, measure),
            remaining_time(compared, measure, self.pace_seconds),
        )
        return " ".join(filter(None, sentences))


def analyse_run(folder: RunFolder) -> Result:
    """Analyse the run in a folder."""
    plan, state = folder.load_plan(), folder.load_state()
    rows = folder.load_rows(state)
    disturbances = load_disturbances(state)
    return Result(
        plan=plan,
        seed=state.seed,
        ended=state.ended,
        rounds=state.rounds,
        planned_rounds=state.planned_rounds,
        plan_changes=state.plan_changes,
        decided_arms=state.decided_arms,
        seconds=state.seconds,
        pace_seconds=state.pace_seconds(plan.arm_names) if state.rounds else 0.0,
        comparisons=compare_arms(
            rows, plan.base, plan.other_arms, plan.decision, state.looks
        ),
        request_counts=count_requests(rows),
        warnings=[
            *find_obstacles(state.environment),
            *find_disturbed_rounds(disturbances),
            *_warnings(rows, plan),
        ],
        events=state.events,
        snapshot_url=state.snapshot_url,
        environment=state.environment,
        noise_check=load_noise_check(state),
        disturbances=disturbances,
    )


def _warnings(rows: Sequence[Row], plan: Plan) -> list[str]:
    figures = figures_by_arm(rows, plan.decision.method)
    warnings = [*find_saturated_arms(plan, figures), *_restart_warnings(plan)]
    if {row.method for row in rows} == {plan.decision.method}:
        warnings += find_idle_clients(plan, figures)
    for arm, rounds_of_arm in figures.items():
        medians = [figures["p50"] for figures in rounds_of_arm.values()]
        if (
            len(medians) > 1
            and (spread := stdev(medians) / fmean(medians)) > MAX_SPREAD
        ):
            warnings.append(
                f"The median of {arm} varied by {spread:.0%} between rounds. Look at "
                "the chart of medians, and repeat the run on a quieter machine."
            )
        room = plan.design.slice_seconds / fmean(medians)
        if not plan.is_switched and room < MIN_REQUESTS_PER_SLICE:
            warnings.append(
                f"A slice has room for {room:.1f} consecutive requests of {arm}. "
                "Much of each slice is idle, and some requests reach into others. "
                "Set a longer `slice_seconds` in the plan."
            )
    return warnings


def _restart_warnings(plan: Plan) -> Iterator[str]:
    if plan.is_switched or not (plan.remote and plan.other_arms):
        return
    if kept := [name for name, arm in plan.arms.items() if not arm.restart]:
        yield (
            f"No command restarts {' and '.join(kept)} before each round. What their "
            "last start happened to do to their speed is part of the differences, and "
            "no interval covers it. Give them a `restart` in the plan, or restart them "
            "and run the experiment again."
        )


def to_json(result: Result) -> str:
    """Return the text of result.json, with null for infinite values."""
    content = {
        "question": result.plan.question,
        "base": result.plan.base,
        "decision": result.plan.decision.model_dump(),
        "level": 1 - ALPHA,
        "seed": result.seed,
        "ended": result.ended,
        "rounds": result.rounds,
        "planned_rounds": result.planned_rounds,
        "plan_changes": result.plan_changes,
        "decided_arms": result.decided_arms,
        "seconds": result.seconds,
        "headlines": result.headlines,
        "outlook": result.outlook,
        "comparisons": [asdict(one) for one in result.comparisons],
        "requests": {
            arm: asdict(counts) for arm, counts in result.request_counts.items()
        },
        "noise_check": asdict(result.noise_check) if result.noise_check else None,
        "disturbances": [asdict(one) for one in result.disturbances],
        "warnings": result.warnings,
        "events": result.events,
        "snapshot_url": result.snapshot_url,
        "environment": result.environment,
        "plan": result.plan.model_dump(),
    }
    return json.dumps(finite(content), indent=2, allow_nan=False) + "\n"


def finite(value: Any) -> Any:
    """Return content for JSON, with None in place of infinite values and NaN."""
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
