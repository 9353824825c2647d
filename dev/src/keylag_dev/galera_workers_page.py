"""Measures what Rally's iterations wait for outside of Keystone; writes a page.

    python -m keylag_dev.galera_workers_page

Needs root and some 20 minutes of an idle machine.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import click

from keylag.lab import intervals
from keylag.lab.galera.lab import PROJECTS, USERS, GaleraWan
from keylag.lab.galera.options import NODES, ClusterOptions
from keylag.lab.galera.rally import (
    CONCURRENCY,
    SCENARIOS,
    TIMES,
    WORKERS,
    Iterations,
    RallyLoad,
    run_scenario,
)
from keylag.lab.link import Link, format_duration
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.galera_rally_page import PARTS, part_cells
from keylag_dev.lab_page import Gaps, measuring, milliseconds, write_page

PAGE: Final = CHECKOUT / "docs" / "labs" / "galera-wan-workers.md"
ROUND_TRIPS_SECONDS: Final = (0.1, 0.5)
CONCURRENCIES: Final = (1, CONCURRENCY)
"""Iterations at the same time: no one waits for a worker, and as in the paper."""
RUNS: Final = 2
ORDER: Final = random.Random(1)  # noqa: S311 - an order is no secret
INTRODUCTION: Final = f"""\
# What Rally's iterations wait for outside of Keystone

<!-- Made by `python -m keylag_dev.galera_workers_page`; run it again instead of
editing. -->

Two sites of {NODES} database nodes each, a segment for each site, with {USERS} users in
{PROJECTS} projects. Rally runs at site a: {TIMES} iterations of each scenario, one and
{CONCURRENCY} at the same time, each {RUNS} times, in random order.

*Iteration* is the mean of all, in ms, with an interval at 95 % by Student's t. The
parts are in ms, too: the mean of the runs, and each run in brackets, as in [the tables
of Rally's scenarios](galera-wan-rally.md). Keystone has {WORKERS} workers. One
iteration at a time finds a free one, so *outside* is Rally itself there.
"""


class Kind(NamedTuple):
    """A kind of run of Rally."""

    scenario: str
    round_trip_seconds: float
    concurrency: int

    def __str__(self) -> str:
        trip = format_duration(self.round_trip_seconds)
        return f"{self.scenario}, {trip}, {self.concurrency} at the same time"


KINDS: Final = [
    Kind(*one) for one in product(SCENARIOS, ROUND_TRIPS_SECONDS, CONCURRENCIES)
]
Runs = Mapping[Kind, Sequence[Iterations]]


def render(runs: Runs) -> str:
    """Return the page."""
    return "\n".join([*_lines(runs), ""])


def _lines(runs: Runs) -> Iterator[str]:
    yield INTRODUCTION
    texts = ("scenario", "round trip", "at the same time")
    numbers = ("iteration", *PARTS, "failed")
    yield f"| {' | '.join([*texts, *numbers])} |"
    yield f"|{'---|' * len(texts)}{'---:|' * len(numbers)}"
    for kind in KINDS:
        found = runs.get(kind, ())
        seconds = [each for one in found for each in one.seconds]
        cells = (
            *(kind.scenario, format_duration(kind.round_trip_seconds)),
            str(kind.concurrency),
            milliseconds(intervals.mean(seconds)),
            *part_cells(found),
            str(sum(len(one.errors) for one in found)),
        )
        yield f"| {' | '.join(cells)} |"


@click.command()
def main() -> None:
    """Run all kinds in turn, and write the page."""
    lab = GaleraWan(state_folder() / "labs" / "galera-workers-page")
    runs = defaultdict[Kind, list[Iterations]](list)
    gaps = Gaps()
    with measuring(lab) as (out, cost):
        lab.up(Link(), ClusterOptions(), click.echo)
        cost.note_start()
        for number in range(1, RUNS + 1):
            for kind in ORDER.sample(KINDS, len(KINDS)):
                with gaps.reporting(f"run {number} of {RUNS}, {kind}"):
                    runs[kind].append(_run(lab, kind, out / str(number)))
        write_page(PAGE, render(runs) + gaps.sentence(), cost)


def _run(lab: GaleraWan, kind: Kind, out: Path) -> Iterations:
    lab.wan.change(Link(kind.round_trip_seconds))
    load = RallyLoad(concurrency=kind.concurrency)
    return run_scenario(lab, kind.scenario, out / str(KINDS.index(kind)), load)


if __name__ == "__main__":
    main()
