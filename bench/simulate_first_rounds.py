"""Simulate the first rounds of experiments: how often does their noise end the run?

    .venv/bin/python bench/simulate_first_rounds.py

They end a run if the lower bound of the spread of every arm is too wide for the asked
interval, and no arm is far from the base, as none is here; see
keylag.experiment.noise_check.  Each experiment has its own seed, and the
noise of `simulated_noise`.  Prints how often that happens to runs that need a multiple
of the rounds that they have time for.
"""

from collections.abc import Iterator, Sequence

import click
import numpy as np

from keylag.experiment.noise import QUARTERS, Spread, Values, estimate_spread
from simulated_noise import ISSUE, VALIDATE, SimulatedRound, Workload

LOADS: Sequence[tuple[Workload, int]] = ((VALIDATE, 2), (ISSUE, 2), (ISSUE, 5))
"""With the number of arms."""
ROUNDS = (2, 3, 4)
NEEDED = (0.5, 1, 2, 4, 9)
"""The rounds that the asked interval takes, by those that there is time for."""
MANY_ROUNDS = 1000
"""By which the true spread is known."""


def estimate_arms(load: Workload, arms: int, rounds: int, seed: int) -> list[Spread]:
    """Return the spread of the mean of each arm but the base, by few rounds."""
    rng = np.random.default_rng(seed)
    drawn = [load.draw(rng, [0.0] * arms) for _ in range(rounds)]
    found = [_estimate_arm(load, one) for one in zip(*drawn, strict=True)]
    return [one for one in found if one]


def _estimate_arm(load: Workload, rounds: Sequence[SimulatedRound]) -> Spread | None:
    whole = [(one.ratios["mean"], one.control) for one in rounds]
    quarters = [pair for one in rounds for pair in _quarters(one)]
    return estimate_spread(_values(load, whole), _values(load, quarters))


def _quarters(one: SimulatedRound) -> Iterator[tuple[float, float]]:
    # Each with as many requests as the others; a few long slices are split.
    slices = np.repeat(np.array(one.slices), QUARTERS, axis=0)
    for part in np.split(slices, QUARTERS):
        ratio, control = part.mean(axis=0)
        yield float(ratio), float(control)


def _values(load: Workload, pairs: Sequence[tuple[float, float]]) -> Values:
    ratios, control = zip(*pairs, strict=True)
    return ratios, control if load.hash_share else None


def table_rows(experiments: int) -> Iterator[list[str]]:
    """Yield load, arms and rounds, and how often they end each kind of run."""
    for load, arms in LOADS:
        true = [one.estimate for one in estimate_arms(load, arms, MANY_ROUNDS, 0)]
        for rounds in ROUNDS:
            found = [
                estimate_arms(load, arms, rounds, seed)
                for seed in range(1, experiments + 1)
            ]
            low = np.array([[one.low for one in spreads] for spreads in found]) / true
            ended = [np.mean((low > needed**-0.5).all(axis=1)) for needed in NEEDED]
            shares = [f"{share:.1%}" for share in ended]
            yield [load.name, str(arms), str(rounds), *shares]


@click.command()
@click.option(
    "--experiments", default=1000, show_default=True, help="Experiments per row."
)
def command(experiments: int) -> None:
    """Print the share of runs that their first rounds end, by the rounds they need."""
    heading = ("load", "arms", "first rounds", *(f"needs {one:g}" for one in NEEDED))
    click.echo(f"| {' | '.join(heading)} |")
    click.echo(f"|---{'|---:' * (len(heading) - 1)}|")
    for cells in table_rows(experiments):
        click.echo(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    command()
