"""Repeats the tables of the paper on Galera's segments, and writes a page of them.

    python -m keylag_dev.galera_rally_page

Needs root and some 40 minutes of an idle machine.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import click
import numpy as np
import numpy.typing as npt

from keylag.experiment.interval import Interval
from keylag.lab import intervals
from keylag.lab.galera.lab import PROJECTS, USERS, GaleraWan
from keylag.lab.galera.options import NODES, ClusterOptions
from keylag.lab.galera.rally import (
    CONCURRENCY,
    SCENARIOS,
    TIMES,
    WORKERS,
    Iterations,
    run_scenario,
)
from keylag.lab.galera.site import REVOCATION_EVENTS
from keylag.lab.galera.site_breakdown import SHORTEST_SECONDS
from keylag.lab.link import Link, format_duration
from keylag.paths import CHECKOUT
from keylag.phases import CATEGORY_NAMES
from keylag.state import state_folder
from keylag_dev.lab_page import (
    Gaps,
    measuring,
    milliseconds,
    with_interval,
    write_page,
)

PAGE: Final = CHECKOUT / "docs" / "labs" / "galera-wan-rally.md"
ROUND_TRIPS_SECONDS: Final = (0.1, 0.2, 0.3, 0.4, 0.5)
STARTS: Final = (False, True, True, False)
"""Whether each site is a segment, at each start of the cluster."""
ORDER: Final = random.Random(1)  # noqa: S311 - an order is no secret
PAPER: Final[Mapping[str, Mapping[float, str]]] = {
    "create-user": {0.1: "3 %", 0.2: "3 %", 0.5: "12 %"},
    "create-and-list-users": {0.1: "2 %", 0.2: "2 %", 0.5: "8 %"},
}
"""How much less time a scenario took with segments, where the paper says it."""
INTRODUCTION: Final = f"""\
# Rally's scenarios on a Galera cluster over two sites

<!-- Made by `python -m keylag_dev.galera_rally_page`; run it again instead of
editing. -->

Two sites of {NODES} database nodes each, with {USERS} users in {PROJECTS} projects, and
{REVOCATION_EVENTS} revocation events before each run. Rally runs at site a, with
{CONCURRENCY} iterations at the same time, {TIMES} times for each of
{len(STARTS)} starts of the cluster: two with a segment for each site, two with one for
both. After each start, one run of each scenario fills the caches and does not count;
the others have a random order.

The times are means of an iteration in ms, with an interval at 95 % by Student's t.
*Saved* is how much less an iteration takes with two segments, with an interval by the
bootstrap of iterations.

The second table of a scenario shows where the time of a mean iteration goes, in ms: the
mean of the starts, and each start in brackets. Keystone's parts are those of its
breakdown, by the Prometheus of site a, of all requests from the first iteration to the
last, for each user created then. *Outside* is the rest: an iteration waits for a free
worker, and Rally works. *Busy workers* is the mean number of requests that Keystone
worked on at the same time; it has {WORKERS} workers. A run of less than
{SHORTEST_SECONDS:g} s has no parts.
"""

CATEGORIES: Final = {one: CATEGORY_NAMES[one] for one in ("password_hash", "sql")}
"""Those of a breakdown that have a column of their own, and their names."""
PARTS: Final = (*CATEGORIES.values(), "the rest of Keystone", "outside", "busy workers")
"""Of the time of an iteration, in ms, and how many workers were busy."""
SEGMENTS: Final = {False: "one", True: "two"}
"""How many there are, by whether each site is a segment."""

Array = npt.NDArray[np.float64]
Runs = Mapping[tuple[str, float, bool], Sequence[Iterations]]
"""A run for each start, by scenario, round trip, and whether each site is a segment."""


def render(runs: Runs) -> str:
    """Return the page."""
    failed = sum(len(one.errors) for found in runs.values() for one in found)
    lines = [line for scenario in SCENARIOS for line in _lines(scenario, runs)]
    return "\n".join([INTRODUCTION, *lines, f"Failed iterations: {failed}.", ""])


def _lines(scenario: str, runs: Runs) -> Iterator[str]:
    yield f"**{scenario}**"
    yield ""
    yield from _savings(scenario, runs)
    yield ""
    yield f"**Where the time of {scenario} goes**"
    yield ""
    yield from _parts(scenario, runs)
    yield ""


def _savings(scenario: str, runs: Runs) -> Iterator[str]:
    yield "| round trip | one segment | two segments | saved | saved in the paper |"
    yield f"|---|{'---:|' * 4}"
    for seconds in ROUND_TRIPS_SECONDS:
        one = _seconds(runs, scenario, seconds, segments=False)
        two = _seconds(runs, scenario, seconds, segments=True)
        cells = [
            format_duration(seconds),
            milliseconds(intervals.mean(one)),
            milliseconds(intervals.mean(two)),
            with_interval(saved_share(one, two).scaled(100), 1, " %"),
            PAPER[scenario].get(seconds, "-"),
        ]
        yield f"| {' | '.join(cells)} |"
    trips = round_trips(scenario, runs)
    yield ""
    yield (
        f"Each ms of the round trip adds {with_interval(trips, 2, ' ms')}"
        " to an iteration with two segments."
    )


def _parts(scenario: str, runs: Runs) -> Iterator[str]:
    yield f"| round trip | segments | {' | '.join(PARTS)} |"
    yield f"|---|---|{'---:|' * len(PARTS)}"
    for seconds, segments in product(ROUND_TRIPS_SECONDS, SEGMENTS):
        cells = part_cells(runs.get((scenario, seconds, segments), ()))
        row = (format_duration(seconds), SEGMENTS[segments], *cells)
        yield f"| {' | '.join(row)} |"


def part_cells(runs: Sequence[Iterations]) -> list[str]:
    """Return where the time of a mean iteration goes, in the order of PARTS.

    A cell is the mean of the runs, and each run in brackets; `-` without figures.
    """
    known = [one for one in runs if one.keystone_seconds]
    if not known:
        return ["-"] * len(PARTS)
    columns = zip(*map(_part_seconds, known), strict=True)
    busy = [one.busy_workers for one in known]
    return [
        *(_each([one * 1000 for one in column], 0) for column in columns),
        _each(busy, 2),
    ]


def _part_seconds(run: Iterations) -> list[float]:
    found = dict(run.keystone_seconds)
    named = [found.pop(category, 0.0) for category in CATEGORIES]
    return [*named, sum(found.values()), run.outside_seconds]


def _each(values: Sequence[float], decimals: int) -> str:
    each = ", ".join(f"{one:.{decimals}f}" for one in values)
    return f"{fmean(values):.{decimals}f} ({each})"


def _seconds(
    runs: Runs, scenario: str, round_trip: float, *, segments: bool
) -> list[float]:
    found = runs.get((scenario, round_trip, segments), ())
    return [seconds for one in found for seconds in one.seconds]


def saved_share(one: Sequence[float], two: Sequence[float]) -> Interval:
    """Return the share of the mean of `one` by which that of `two` is less."""

    def share(one: Array, two: Array, axis: int) -> Any:
        return 1 - np.mean(two, axis=axis) / np.mean(one, axis=axis)

    return intervals.estimate(share, one, two)


def round_trips(scenario: str, runs: Runs) -> Interval:
    """Return by how many round trips an iteration with two segments grows.

    It is the slope of a straight line through all iterations.
    """
    pairs = [
        (seconds, one)
        for seconds in ROUND_TRIPS_SECONDS
        for one in _seconds(runs, scenario, seconds, segments=True)
    ]
    trips = [seconds for seconds, _ in pairs]
    iterations = [one for _, one in pairs]

    def slope(trip: Array, took: Array, axis: int) -> Any:
        trip = trip - np.mean(trip, axis=axis, keepdims=True)
        return np.sum(trip * took, axis=axis) / np.sum(trip * trip, axis=axis)

    return intervals.estimate(slope, trips, iterations, paired=True)


@click.command()
def main() -> None:
    """Run the scenarios at several round trips, and write the page."""
    lab = GaleraWan(state_folder() / "labs" / "galera-wan-page")
    runs = defaultdict[tuple[str, float, bool], list[Iterations]](list)
    gaps = Gaps()
    with measuring(lab) as (out, cost):
        for number, segments in enumerate(STARTS, start=1):
            with gaps.noting(f"start {number}"):
                lab.up(Link(), ClusterOptions(segments=segments), click.echo)
                cost.note_start()
                for key, found in _run_scenarios(lab, out / str(number), gaps):
                    runs[*key, segments].append(found)
        write_page(PAGE, render(runs) + gaps.sentence(), cost)


def _run_scenarios(
    lab: GaleraWan, out: Path, gaps: Gaps
) -> Iterator[tuple[tuple[str, float], Iterations]]:
    """Yield a scenario with a round trip, and its iterations, if it could be run."""
    for scenario in SCENARIOS:
        with gaps.reporting(f"start {out.name}, caches, {scenario}"):
            run_scenario(lab, scenario, out / f"caches-{scenario}")
    runs = list(product(ROUND_TRIPS_SECONDS, SCENARIOS))
    for seconds, scenario in ORDER.sample(runs, len(runs)):
        row = f"start {out.name}, {format_duration(seconds)}, {scenario}"
        with gaps.reporting(row):
            lab.wan.change(Link(seconds))
            folder = out / f"{seconds}-{scenario}"
            yield (scenario, seconds), run_scenario(lab, scenario, folder)


if __name__ == "__main__":
    main()
