"""Progress lines of a run."""

import math
from collections.abc import Iterator, Sequence

from rich.console import Console

from keylag.experiment.analysis import Comparison
from keylag.experiment.messages import (
    describe_decided_arms,
    explain_missing_figure,
    format_percent,
    remaining_rounds,
    remaining_time,
)
from keylag.experiment.noise import forecast_noise
from keylag.experiment.noise_check import (
    MIN_CHECK_ROUNDS,
    load_disturbances,
    load_noise_check,
)
from keylag.experiment.obstacles import find_obstacles_under_load
from keylag.experiment.plan import MIN_ROUNDS, SECONDS_PER_MINUTE
from keylag.experiment.run import ExperimentRun
from keylag.experiment.run_folder import MAX_FAILED_ROUNDS


def print_round(run: ExperimentRun, console: Console) -> None:
    """Print the estimates after a round and the remaining time."""
    for line in describe_round(run):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def describe_round(run: ExperimentRun) -> list[str]:
    """Return the lines about the round that has just ended."""
    measure = run.plan.decision.measure
    compared = run.comparisons
    left = max(0.0, run.plan.design.minutes - run.state.seconds / SECONDS_PER_MINUTE)
    first = f"Round {run.state.rounds} done, at most {left:.1f} min left."
    estimates = [
        f"  {one.arm}: {_describe_estimate(one, measure)}"
        for one in compared
        if one.measures
    ]
    skipped = [
        f"  {arm}: skipped, no successful request in {MAX_FAILED_ROUNDS} rounds"
        for arm in run.plan.arm_names
        if run.state.has_failed(arm)
    ]
    outlook = list(_describe_noise(run)) or [_describe_outlook(run, compared, left)]
    decided = describe_decided_arms(compared, run.state.decided_arms)
    texts = [*filter(None, [decided]), *outlook, *_describe_obstacles(run)]
    return [first, *estimates, *skipped, *(f"  {text}" for text in texts)]


def _describe_estimate(one: Comparison, measure: str) -> str:
    found = one.measures.get(measure)
    if found is None:
        return explain_missing_figure(one)
    if found.relative and math.isinf(found.relative.high):
        mid = 100 * found.relative.mid
        return f"{mid:+.1f} %, with an interval from round {MIN_ROUNDS} on"
    return f"{format_percent(found.relative)}, {found.verdict}"


def _describe_noise(run: ExperimentRun) -> Iterator[str]:
    # Before the first look, the spread tells more than the mean.
    if MIN_CHECK_ROUNDS <= run.state.rounds < MIN_ROUNDS:
        yield from forecast_noise(run.plan, run.state, run.rows).describe()


def _describe_obstacles(run: ExperimentRun) -> Iterator[str]:
    check = load_noise_check(run.state)
    if check and check.rounds == run.state.rounds:
        yield from check.obstacles
        return
    for latest in load_disturbances(run.state)[-1:]:
        yield from find_obstacles_under_load(latest)


def _describe_outlook(
    run: ExperimentRun, compared: Sequence[Comparison], left: float
) -> str:
    measure = run.plan.decision.measure
    compared = [one for one in compared if one.arm in run.active_arms]
    outlook = remaining_time(compared, measure, run.pace_seconds)
    rounds = remaining_rounds(compared, measure) or 0
    if rounds * run.pace_seconds > left * SECONDS_PER_MINUTE:
        outlook += " The time limit is shorter: start a run with a longer --minutes."
    return outlook
