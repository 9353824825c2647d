"""Simulate experiments to measure their error rates.

    .venv/bin/python bench/simulate.py

Each experiment has its own seed.  The model has

- requests with a median of 12 ms and a long tail, in whole milliseconds like JMeter's;
- a machine whose speed drifts, equally for all arms of a round;
- a random effect of each restart of Keystone, whose size is that of the machine: quiet,
  usual or restless.

The code of real experiments judges them after every round.
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
"""Standard deviation of the logarithm of a latency."""
DRIFT = 0.05
"""Standard deviation of the change of speed from round to round, as a share."""
RESTART_SPREAD = {"quiet": 0.003, "usual": 0.01, "restless": 0.03}
"""Standard deviation of the effect of a restart, as a share, by machine."""
REQUESTS = 650
"""Requests of each arm per round."""
ROUNDS = 24
"""Rounds of ten minutes on two cores, with turns of 8 s and a warm-up of 2 s."""
SMALLEST = 0.02
LATENCY_FACTORS = [math.exp(x) for x in NormalDist(0, SPREAD).samples(50_000, seed=1)]
"""Latencies relative to the median; a fixed population is faster to draw from."""


@dataclass(frozen=True)
class Case:
    """The true slowdown of each arm, as a share of the base."""

    name: str
    slowdowns: Sequence[float]


CASES = (
    Case("A/A", (0.0,)),
    Case("A/A with three arms", (0.0, 0.0, 0.0)),
    Case("planted 2 %", (0.02,)),
    Case("planted 5 %", (0.05,)),
)


def simulated_median(rng: Random, true_median: float, spread: float) -> float:
    """Return the measured median of an arm in a round, in seconds."""
    median = true_median * math.exp(rng.gauss(0, spread))
    factors = rng.choices(LATENCY_FACTORS, k=REQUESTS)
    values = [round(median * factor, 3) for factor in factors]
    return grouped_quantile(values, 0.5)


def simulate_rounds(rng: Random, case: Case, spread: float) -> Iterator[list[float]]:
    """Yield the relative differences of all arms from the base, round by round."""
    machine = 1.0
    for _ in range(ROUNDS):
        machine *= math.exp(rng.gauss(0, DRIFT))
        median = machine * MEDIAN_SECONDS
        base = simulated_median(rng, median, spread)
        yield [
            simulated_median(rng, median * (1 + slowdown), spread) / base - 1
            for slowdown in case.slowdowns
        ]


def simulate_experiment(seed: int, case: Case, spread: float) -> str:
    """Return the final verdict; with several arms, one that claims a difference."""
    seen: list[list[float]] = [[] for _ in case.slowdowns]
    verdicts = [CANNOT_TELL] * len(case.slowdowns)
    for differences in simulate_rounds(Random(seed), case, spread):
        for values, difference in zip(seen, differences, strict=True):
            values.append(difference)
        alpha = ALPHA / len(case.slowdowns)
        verdicts = [
            verdict(confidence_interval(values, alpha), SMALLEST) for values in seen
        ]
        if CANNOT_TELL not in verdicts:
            break
    return max(verdicts, key=claims_difference)


def claims_difference(verdict_text: str) -> bool:
    """Return whether a verdict is faster or slower."""
    return verdict_text.endswith("er")


def verdict_shares(case: Case, spread: float, experiments: int) -> dict[str, float]:
    """Return the share of experiments with each verdict."""
    counted = Counter(
        simulate_experiment(seed, case, spread) for seed in range(experiments)
    )
    return {
        verdict_text: number / experiments for verdict_text, number in counted.items()
    }


@click.command()
@click.option(
    "--experiments", default=500, show_default=True, help="Experiments per case."
)
def command(experiments: int) -> None:
    """Simulate experiments and print the shares of their verdicts."""
    for case, (machine, spread) in product(CASES, RESTART_SPREAD.items()):
        found = verdict_shares(case, spread, experiments)
        text = ", ".join(f"{name} {share:.1%}" for name, share in sorted(found.items()))
        click.echo(f"{case.name}, {machine} machine: {text}")


if __name__ == "__main__":
    command()
