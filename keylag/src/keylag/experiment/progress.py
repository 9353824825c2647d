"""What a run says after each block."""

from rich.console import Console

from keylag.experiment.run import Run
from keylag.experiment.words import MINUTE, per_cent, still_needed


def say_block(run: Run, console: Console) -> None:
    """Print the present estimate, the time left, and what it still takes."""
    for line in lines(run):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def lines(run: Run) -> list[str]:
    """Return the lines about the block that has just ended."""
    measure = run.plan.decision.measure
    compared = run.comparisons
    left = max(0.0, run.plan.design.minutes - run.journal.seconds / MINUTE)
    first = f"Block {run.journal.blocks}, at most {left:.1f} min left."
    estimates = [
        f"  {one.arm}: {per_cent(found.relative)}, {found.verdict}"
        for one in compared
        if (found := one.measures.get(measure))
    ]
    block_seconds = run.journal.seconds / run.journal.blocks
    return [first, *estimates, f"  {still_needed(compared, measure, block_seconds)}"]
