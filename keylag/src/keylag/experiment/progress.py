"""Progress lines of a run."""

from rich.console import Console

from keylag.experiment.messages import (
    format_percent,
    remaining_rounds,
    remaining_time,
)
from keylag.experiment.plan import SECONDS_PER_MINUTE
from keylag.experiment.run import ExperimentRun


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
        f"  {one.arm}: {format_percent(found.relative)}, {found.verdict}"
        for one in compared
        if (found := one.measures.get(measure))
    ]
    round_seconds = run.state.seconds / run.state.rounds
    outlook = remaining_time(compared, measure, round_seconds)
    rounds = remaining_rounds(compared, measure) or 0
    if rounds * round_seconds > left * SECONDS_PER_MINUTE:
        outlook += " The time limit is shorter: start a run with a longer --minutes."
    return [first, *estimates, f"  {outlook}"]
