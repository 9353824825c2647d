"""How the noise between the slices of an experiment grows with the time between them.

    .venv/bin/python bench/slice_noise.py out/experiments/same/latest

A slice is the load of one arm before the next one has its turn.  Its figure is the
median of Keystone's own time, or of the latency if Keystone has no Keylag, as a share
of that arm's in the whole round.  If slices that are near in time differ less than
others, shorter slices make a narrower interval.

The last line says whether restarts add noise: how much the ratio of two arms varies
between rounds, and how much it would by the noise of its slices alone.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Final

import click

from keylag.experiment.plan import Plan
from keylag.experiment.run_folder import RunFolder
from keylag.experiment.samples import Row

MIN_REQUESTS: Final = 3
"""Slices with fewer requests have no median."""
MIN_ROUNDS: Final = 2
LAGS: Final = (1, 2, 4, 8, 16, 32)
"""Slices from the first to the second one."""
Slices = Mapping[int, float]
"""Of an arm in a round: the logarithm of the median, by the number of the slice."""


def medians(rows: Sequence[Row], plan: Plan) -> dict[tuple[int, str], dict[int, float]]:
    """Return the slices of each round and arm, relative to that arm in the round."""
    groups: dict[tuple[int, str], dict[int, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        if row.success and not row.warm_up and row.method == plan.decision.method:
            number = int(row.start_seconds / plan.design.slice_seconds)
            seconds = row.server_timing.get("total", row.latency_seconds)
            groups[row.round, row.arm][number].append(seconds)
    found = {
        key: {
            number: math.log(median(all_seconds))
            for number, all_seconds in slices.items()
            if len(all_seconds) >= MIN_REQUESTS
        }
        for key, slices in groups.items()
    }
    return {key: slices for key, slices in found.items() if slices}


def spread_by_lag(found: Mapping[tuple[int, str], Slices]) -> dict[int, list[float]]:
    """Return half the squared differences between slices, by the lag in slices."""
    rounds: dict[int, dict[int, float]] = defaultdict(dict)
    for (number, _), slices in found.items():
        centre = fmean(slices.values())
        rounds[number] |= {one: value - centre for one, value in slices.items()}
    squares: dict[int, list[float]] = defaultdict(list)
    for slices in rounds.values():
        for (first, one), (second, other) in combinations(sorted(slices.items()), 2):
            if second - first in LAGS:
                squares[second - first].append((one - other) ** 2 / 2)
    return squares


def restart_noise(
    found: Mapping[tuple[int, str], Slices], plan: Plan
) -> tuple[float, float]:
    """Return the spread of the ratio of two arms: measured, and by slices alone.

    Raises ClickException if an arm has fewer than two rounds with two slices.
    """
    measured, alone = [], []
    for arm in plan.other_arms:
        differences = [
            _differences(found[number, plan.base], slices, len(plan.arms))
            for (number, name), slices in found.items()
            if name == arm and (number, plan.base) in found
        ]
        rounds = [one for one in differences if len(one) > 1]
        if len(rounds) < MIN_ROUNDS:
            message = f"{arm} has fewer than {MIN_ROUNDS} rounds with several slices."
            raise click.ClickException(message)
        means = [fmean(one) for one in rounds]
        measured.append(stdev(means) ** 2)
        alone += [stdev(one) ** 2 / len(one) for one in rounds]
    return math.sqrt(fmean(measured)), math.sqrt(fmean(alone))


def _differences(base: Slices, arm: Slices, arms: int) -> list[float]:
    # Each cycle of all arms has one slice of each.
    cycles = [{one // arms: value for one, value in s.items()} for s in (base, arm)]
    return [cycles[1][one] - cycles[0][one] for one in cycles[0].keys() & cycles[1]]


def report(rows: Sequence[Row], plan: Plan) -> Iterator[str]:
    """Yield the lines of the table, and the one about restarts."""
    found = medians(rows, plan)
    yield "| seconds between slices | spread of their medians | pairs |"
    yield "|---:|---:|---:|"
    for lag, squares in sorted(spread_by_lag(found).items()):
        seconds, spread = lag * plan.design.slice_seconds, math.sqrt(fmean(squares))
        yield f"| {seconds:g} | {100 * spread:.1f} % | {len(squares)} |"
    measured, alone = restart_noise(found, plan)
    yield ""
    yield (
        f"Between rounds the ratio of two arms varies by {100 * measured:.1f} %;"
        f" the noise of its slices alone makes {100 * alone:.1f} %."
    )


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Print the report of a run."""
    run = RunFolder(folder)
    click.echo("\n".join(report(run.load_rows(), run.load_plan())))


if __name__ == "__main__":
    command()
