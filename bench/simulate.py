"""How often an experiment is wrong, and how often it finds what was planted.

    .venv/bin/python bench/simulate.py

Simulates whole experiments, each from its own seed: requests of 12 ms in the median
with a long tail, in whole milliseconds as JMeter counts them; a machine whose speed
drifts, which the arms of a round share, since they take short turns; and an
effect of each start of a Keystone, which is what a quiet machine and a restless one
differ in.  They are judged by the code that judges
real ones, after every round.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from statistics import NormalDist

import click

from keylag.experiment.analysis import ALPHA
from keylag.experiment.confidence_sequence import confidence_interval
from keylag.experiment.measures import grouped_quantile
from keylag.experiment.verdicts import CANNOT_TELL, verdict

MEDIAN_SECONDS = 0.012
SPREAD = 0.25
"""Of one request, as the deviation of its logarithm."""
DRIFT = 0.05
"""What a round's machine is faster or slower than the one before."""
RESTART_SPREAD = {"quiet": 0.003, "usual": 0.01, "restless": 0.03}
"""What one start of a Keystone is faster or slower than another, by machine."""
REQUESTS = 650
ROUNDS = 24
"""What 10 minutes on two cores have: turns of 8 s, 2 s of warm-up, fresh starts."""
SMALLEST = 0.02
LATENCY_FACTORS = [math.exp(x) for x in NormalDist(0, SPREAD).samples(50_000, seed=1)]
"""What requests are drawn from, by their medians; drawing anew each time is slow."""


@dataclass(frozen=True)
class Case:
    """How much slower each arm is than the base, in truth."""

    name: str
    slowdowns: Sequence[float]


CASES = (
    Case("A/A", (0.0,)),
    Case("A/A with three arms", (0.0, 0.0, 0.0)),
    Case("planted 2 %", (0.02,)),
    Case("planted 5 %", (0.05,)),
)


def simulated_median(choice: Random, truth: float, start: float) -> float:
    """Return the median of an arm's requests in a round."""
    here = truth * math.exp(choice.gauss(0, start))
    shapes = choice.choices(LATENCY_FACTORS, k=REQUESTS)
    values = [round(here * shape, 3) for shape in shapes]
    return grouped_quantile(values, 0.5)


def simulate_rounds(choice: Random, case: Case, start: float) -> Iterator[list[float]]:
    """Give each round's difference from the base, an arm each; in shares of it."""
    machine = 1.0
    for _ in range(ROUNDS):
        machine *= math.exp(choice.gauss(0, DRIFT))
        here = machine * MEDIAN_SECONDS
        base = simulated_median(choice, here, start)
        yield [
            simulated_median(choice, here * (1 + slowdown), start) / base - 1
            for slowdown in case.slowdowns
        ]


def simulate_experiment(seed: int, case: Case, start: float) -> str:
    """Return the verdict it ends with; of several arms, one that claims something."""
    seen: list[list[float]] = [[] for _ in case.slowdowns]
    verdict_text = [CANNOT_TELL] * len(case.slowdowns)
    for differences in simulate_rounds(Random(seed), case, start):
        for values, difference in zip(seen, differences, strict=True):
            values.append(difference)
        alpha = ALPHA / len(case.slowdowns)
        verdict_text = [
            verdict(confidence_interval(values, alpha), SMALLEST) for values in seen
        ]
        if CANNOT_TELL not in verdict_text:
            break
    return max(verdict_text, key=claims_difference)


def claims_difference(verdict_text: str) -> bool:
    """Tell whether a verdict claims one."""
    return verdict_text.endswith("er")


def verdict_shares(case: Case, start: float, experiments: int) -> dict[str, float]:
    """Return how many of the experiments had each verdict, as shares."""
    counted = Counter(
        simulate_experiment(seed, case, start) for seed in range(experiments)
    )
    return {
        verdict_text: number / experiments for verdict_text, number in counted.items()
    }


@click.command()
@click.option("--experiments", default=500, show_default=True, help="Of each case.")
def command(experiments: int) -> None:
    """Simulate experiments and print how they end."""
    for case, (machine, start) in product(CASES, RESTART_SPREAD.items()):
        found = verdict_shares(case, start, experiments)
        text = ", ".join(f"{name} {share:.1%}" for name, share in sorted(found.items()))
        click.echo(f"{case.name}, {machine} machine: {text}")


if __name__ == "__main__":
    command()
