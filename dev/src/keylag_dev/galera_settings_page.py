"""Compares Galera's own settings with those for a long link, and writes a page.

    python -m keylag_dev.galera_settings_page

Needs root and some 40 minutes of an idle machine.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

import click

from keylag.lab import intervals
from keylag.lab.galera.failures import CLIENTS, FAILURES, Outcome, observe
from keylag.lab.galera.lab import GaleraWan
from keylag.lab.galera.measurement import (
    SETTLE_SECONDS,
    keystone_at,
    read_latencies,
    token_load,
)
from keylag.lab.galera.options import NODES, WAN_PROVIDER_OPTIONS, ClusterOptions
from keylag.lab.galera.rally import (
    CONCURRENCY,
    SCENARIOS,
    TIMES,
    Iterations,
    run_scenario,
)
from keylag.lab.link import Link, format_duration
from keylag.lab.load import keylag_on
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.galera_rally_page import SEGMENTS
from keylag_dev.lab_page import Gaps, measuring, milliseconds, write_page

PAGE: Final = CHECKOUT / "docs" / "labs" / "galera-wan-settings.md"
LINK: Final = Link(0.5)
LOSSES: Final = (0.0, 0.01, 0.05)
"""Shares of the packets that the link loses in each direction."""
LOSSY_SECONDS: Final = 60
FAILURE: Final = "near-node"
SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "Galera's own": {},
    "for a long link": WAN_PROVIDER_OPTIONS,
}
INTRODUCTION: Final = f"""\
# Galera's settings on a long link

<!-- Made by `python -m keylag_dev.galera_settings_page`; run it again instead of
editing. -->

Two sites of {NODES} database nodes each, with a round trip of
{format_duration(LINK.round_trip_seconds)} between them: once with Galera's own
time-outs and send windows, and once with [those of the
laboratory](galera-wan.md#the-settings-of-the-cluster); with a segment for each site,
and with one for both. Each cluster was started once.

**Rally's scenarios**, {CONCURRENCY} iterations at the same time, {TIMES} times: means
of an iteration in ms with their intervals at 95 %, and its time in SQL in ms, where its
commits wait. A run of each without a round trip fills the caches first.
"""
LOSS: Final = f"""
**Lost packets**: {CLIENTS} clients send token calls for {LOSSY_SECONDS} s. *Changes of
the cluster* are how often a node left or came back (`wsrep_cluster_conf_id`).
"""
KILLED: Final = f"""
**A lost node**: {FAILURES[FAILURE].summary}, under the load of [lost nodes and
sites](galera-wan-failures.md).
"""


@dataclass(frozen=True)
class Variant:
    """Settings of Galera, and whether each site is a segment."""

    settings: str
    """Key of SETTINGS."""
    segments: bool

    @property
    def cells(self) -> tuple[str, str]:
        """Its cells of a table."""
        return self.settings, SEGMENTS[self.segments]

    def up(self, lab: GaleraWan) -> None:
        """Start it without a round trip; raises the errors of the laboratory."""
        provider = SETTINGS[self.settings]
        options = ClusterOptions(segments=self.segments, provider=provider)
        lab.up(Link(), options, click.echo)


VARIANTS: Final = [Variant(*one) for one in product(SETTINGS, (True, False))]


@dataclass(frozen=True)
class Lossy:
    """Token calls over a link that loses packets."""

    calls: int
    failed: int
    changes: int
    """How often the members of the cluster changed."""


@dataclass
class Results:
    """What was measured; a row that failed is missing."""

    rally: dict[tuple[str, Variant], Iterations]
    """By scenario."""
    lossy: dict[tuple[float, Variant], Lossy]
    """By the share of lost packets."""
    killed: dict[Variant, Outcome]


def render(results: Results) -> str:
    """Return the page."""
    return "\n".join([*_lines(results), ""])


def _lines(results: Results) -> Iterator[str]:
    yield INTRODUCTION
    yield from _head("scenario", ("iteration", "its SQL", "failed"))
    for scenario, variant in product(SCENARIOS, VARIANTS):
        run = results.rally.get((scenario, variant))
        yield _row(variant, scenario, _rally_cells(run) if run else 3 * ["-"])
    yield LOSS
    yield from _head("lost packets", ("changes of the cluster", "failed calls"))
    for loss, variant in product(LOSSES, VARIANTS):
        found = results.lossy.get((loss, variant))
        cells = _lossy_cells(found) if found else 2 * ["-"]
        yield _row(variant, f"{loss:.0%}", cells)
    yield KILLED
    figures = ("longest call, s", "longest gap without a successful call, s", "failed")
    yield from _head("failure", figures)
    for variant in VARIANTS:
        outcome = results.killed.get(variant)
        cells = _killed_cells(outcome) if outcome else 3 * ["-"]
        yield _row(variant, "a2 is killed", cells)


def _head(first: str, figures: Sequence[str]) -> Iterator[str]:
    yield f"| {' | '.join([first, 'settings', 'segments', *figures])} |"
    yield f"|---|---|---|{'---:|' * len(figures)}"


def _row(variant: Variant, first: str, figures: Sequence[str]) -> str:
    return f"| {' | '.join([first, *variant.cells, *figures])} |"


def _rally_cells(run: Iterations) -> list[str]:
    sql = run.keystone_seconds.get("sql")
    return [
        milliseconds(intervals.mean(run.seconds)),
        "-" if sql is None else f"{sql * 1000:.0f}",
        str(len(run.errors)),
    ]


def _lossy_cells(found: Lossy) -> list[str]:
    return [str(found.changes), f"{found.failed} of {found.calls}"]


def _killed_cells(found: Outcome) -> list[str]:
    return [
        f"{found.longest_seconds:.1f}",
        f"{found.longest_gap_seconds:.1f}",
        f"{found.failed} of {found.calls}",
    ]


@click.command()
def main() -> None:
    """Measure each cluster, and write the page."""
    lab = GaleraWan(state_folder() / "labs" / "galera-wan-page")
    results = Results({}, {}, {})
    gaps = Gaps()
    with measuring(lab) as (out, cost):
        for number, variant in enumerate(VARIANTS):
            with gaps.noting(", ".join(variant.cells)):
                variant.up(lab)
                cost.note_start()
                _measure(lab, variant, results, out / str(number), gaps)
        write_page(PAGE, render(results) + gaps.sentence(), cost)


def _measure(
    lab: GaleraWan, variant: Variant, results: Results, out: Path, gaps: Gaps
) -> None:
    name = ", ".join(variant.cells)
    for scenario in SCENARIOS:
        with gaps.reporting(f"{name}, caches, {scenario}"):
            run_scenario(lab, scenario, out / f"caches-{scenario}")
    lab.wan.change(LINK)
    time.sleep(SETTLE_SECONDS)
    for scenario in SCENARIOS:
        with gaps.reporting(f"{name}, {scenario}"):
            results.rally[scenario, variant] = run_scenario(
                lab, scenario, out / scenario
            )
    with gaps.reporting(f"{name}, {FAILURE}"):
        results.killed[variant] = observe(lab, FAILURES[FAILURE], out / FAILURE)
    for loss in LOSSES:
        with gaps.reporting(f"{name}, loss {loss:.0%}"):
            results.lossy[loss, variant] = _lose_packets(
                lab, loss, out / f"loss-{loss}"
            )


def _lose_packets(lab: GaleraWan, loss: float, out: Path) -> Lossy:
    """Send token calls over a link that loses packets; raises LabError."""
    lab.wan.change(Link(LINK.round_trip_seconds, loss_ratio=loss))
    time.sleep(SETTLE_SECONDS)
    router = lab.router(1)
    before = count_changes(lab)
    load = token_load(LOSSY_SECONDS, CLIENTS)
    load.send(keylag_on(router), out, keystone_at(lab, router))
    changes = count_changes(lab) - before
    found = read_latencies(out).values()
    failed = sum(one.failed for one in found)
    return Lossy(failed + sum(one.count for one in found), failed, changes)


def count_changes(lab: GaleraWan) -> int:
    """Return how often the members of the cluster have changed."""
    numbers = [int(one.get("cluster_conf_id", 0)) for one in lab.status().values()]
    # A node that is alone says the largest number that there is.
    return max((one for one in numbers if one < 2**32), default=0)


if __name__ == "__main__":
    main()
