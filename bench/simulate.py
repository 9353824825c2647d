"""How often an experiment is wrong, and how often it finds what was planted.

    .venv/bin/python bench/simulate.py

Simulates whole experiments, each from its own seed: requests of 60 ms in the median
with a long tail, in whole milliseconds as JMeter counts them; a machine whose speed
drifts from block to block; and an effect of each start of a Keystone.  They are
judged by the code that judges real ones, after every block.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import click

from keylag.experiment.analysis import ALPHA
from keylag.experiment.measures import grouped_quantile
from keylag.experiment.sequence import interval
from keylag.experiment.verdicts import CANNOT_TELL, verdict

MEDIAN_SECONDS = 0.060
SPREAD = 0.25
"""Of one request, as the deviation of its logarithm."""
DRIFT = 0.02
"""What a block's machine is faster or slower than the one before."""
START = 0.01
"""What one start of a Keystone is faster or slower than another."""
REQUESTS = 120
BLOCKS = 18
"""What 10 minutes on two cores have: turns of 8 s, 2 s of warm-up, fresh starts."""
SMALLEST = 0.02


@dataclass(frozen=True)
class Case:
    """How much slower each arm is than the base, in truth."""

    name: str
    slower: Sequence[float]


CASES = (
    Case("A/A", (0.0,)),
    Case("A/A with three arms", (0.0, 0.0, 0.0)),
    Case("planted 2 %", (0.02,)),
    Case("planted 5 %", (0.05,)),
)


def turn_median(choice: Random, truth: float) -> float:
    """Return the median of one turn's requests."""
    here = truth * math.exp(choice.gauss(0, START))
    values = [
        round(here * choice.lognormvariate(0, SPREAD), 3) for _ in range(REQUESTS)
    ]
    return grouped_quantile(values, 0.5)


def blocks(choice: Random, case: Case) -> Iterator[list[float]]:
    """Give each block's difference from the base, an arm each; in shares of it."""
    machine = 1.0
    for _ in range(BLOCKS):
        machine *= math.exp(choice.gauss(0, DRIFT))
        base = turn_median(choice, machine * MEDIAN_SECONDS)
        yield [
            turn_median(choice, machine * MEDIAN_SECONDS * (1 + slower)) / base - 1
            for slower in case.slower
        ]


def experiment(seed: int, case: Case) -> tuple[str, int]:
    """Return the first arm's, or any wrong arm's, verdict and after how many blocks."""
    seen: list[list[float]] = [[] for _ in case.slower]
    judged = [CANNOT_TELL] * len(case.slower)
    for number, differences in enumerate(blocks(Random(seed), case), start=1):
        for values, difference in zip(seen, differences, strict=True):
            values.append(difference)
        alpha = ALPHA / len(case.slower)
        judged = [verdict(interval(values, alpha), SMALLEST) for values in seen]
        if CANNOT_TELL not in judged:
            return max(judged, key=is_difference), number
    return max(judged, key=is_difference), BLOCKS


def is_difference(judged: str) -> bool:
    """Tell whether a verdict claims one."""
    return judged.endswith("er")


def shares(case: Case, experiments: int) -> dict[str, float]:
    """Return how many of the experiments had each verdict, as shares."""
    counted = Counter(experiment(seed, case)[0] for seed in range(experiments))
    return {judged: number / experiments for judged, number in counted.items()}


@click.command()
@click.option("--experiments", default=500, show_default=True, help="Of each case.")
def command(experiments: int) -> None:
    """Simulate experiments and print how they end."""
    for case in CASES:
        found = shares(case, experiments)
        said = ", ".join(f"{name} {share:.1%}" for name, share in sorted(found.items()))
        click.echo(f"{case.name}: {said}")


if __name__ == "__main__":
    command()
