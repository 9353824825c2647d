"""Measures what a write of an object waits for, and writes a page of it.

    python -m keylag_dev.swift_writes_page

Needs root and some eight minutes of an idle machine.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Final

import click

from keylag.lab.link import Link, format_duration
from keylag.lab.swift.lab import LINK, STORAGE_NODES, SwiftRegions
from keylag.lab.swift.measurement import CLIENTS, LABELS, Load, Measured, measure
from keylag.lab.swift.options import SETS
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.lab_page import Gaps, measuring, milliseconds, write_page

PAGE: Final = CHECKOUT / "docs" / "labs" / "swift-regions-writes.md"
SET: Final = "set3"
SECONDS: Final = 30
REGION: Final = 1
ROUND_TRIPS_SECONDS: Final = (0.02, 0.1, LINK.round_trip_seconds)
UPDATE_SECONDS: Final = (SETS[SET].container_update_seconds, 0.05)
"""Swift's default, and less than a round trip."""
INTRODUCTION: Final = f"""\
# What a write of an object waits for

<!-- Made by `python -m keylag_dev.swift_writes_page`; run it again instead of
editing. -->

{SET} of [Swift in two regions](swift-regions.md): {STORAGE_NODES} storage nodes each,
three replicas; each proxy writes to its own region first. {CLIENTS} clients write, read
and delete objects of 1 kB in turn, for {SECONDS} s at the proxy server of region
{REGION}, over a link with {LINK.rate_bits_per_second / 1e6:g} Mbit/s.

After it has written an object, an object server updates the container, whose replicas
are in both regions. It waits for that as long as `container_update_timeout` says;
then it answers, and the update goes on. The times are means at the client in ms, with
an interval at 95 %.
"""

Results = Mapping[tuple[float, float], Measured]
"""What was measured with a time-out at a round trip, both in seconds."""


def render(results: Results) -> str:
    """Return the page."""
    return "\n".join(_lines(results))


def _lines(results: Results) -> Iterator[str]:
    yield INTRODUCTION
    verbs = [one.removesuffix(" object") for one in LABELS]
    headings = ("`container_update_timeout`", "round trip", *verbs, "failed")
    yield f"| {' | '.join(headings)} |"
    yield f"|---|---|{'---:|' * (len(verbs) + 1)}"
    for update, trip in product(UPDATE_SECONDS, ROUND_TRIPS_SECONDS):
        row = (f"{update:g} s", format_duration(trip))
        found = results.get((update, trip))
        cells = _figures(found) if found else ["-"] * (len(verbs) + 1)
        yield f"| {' | '.join([*row, *cells])} |"
    yield ""
    for update in UPDATE_SECONDS:
        yield from _growth(results, update)


def _figures(found: Measured) -> list[str]:
    calls = [found.calls[label] for label in LABELS]
    failed = sum(one.failed for one in calls)
    return [*(milliseconds(one.mean_seconds) for one in calls), str(failed)]


def _growth(results: Results, update: float) -> Iterator[str]:
    """Yield by how many round trips calls grow; nothing if one is not known."""
    near, far = ROUND_TRIPS_SECONDS[0], ROUND_TRIPS_SECONDS[-1]
    first, last = results.get((update, near)), results.get((update, far))
    if not first or not last:
        return
    grown = ", ".join(
        f"{round(_grown(first, last, label) / (far - near), 1) + 0.0} ms to a {label}"
        for label in LABELS
    )
    yield f"With {update:g} s, each ms of the round trip adds {grown}."
    yield ""


def _grown(first: Measured, last: Measured, label: str) -> float:
    means = [one.calls[label].mean_seconds.mid for one in (first, last)]
    return means[1] - means[0]


def _measure_update(
    lab: SwiftRegions, update: float, out: Path, gaps: Gaps
) -> Iterator[tuple[float, Measured]]:
    """Yield each round trip that could be measured, and its figures."""
    for trip in ROUND_TRIPS_SECONDS:
        row = f"{update:g} s, {format_duration(trip)}"
        with gaps.reporting(row):
            lab.keystones.wan.change(replace(LINK, round_trip_seconds=trip))
            folder = out / f"{update:g}-{trip:g}"
            yield trip, measure(lab, Load(REGION, SECONDS), folder)


@click.command()
def main() -> None:
    """Measure both time-outs at each round trip, and write the page."""
    lab = SwiftRegions(state_folder() / "labs" / "swift-writes-page")
    results: dict[tuple[float, float], Measured] = {}
    gaps = Gaps()
    with measuring(lab) as (out, cost):
        lab.up(Link(), SETS[SET], click.echo)
        cost.note_start()
        for update in UPDATE_SECONDS:
            with gaps.noting(f"container_update_timeout = {update:g}"):
                lab.keystones.wan.change(Link())
                options = replace(SETS[SET], container_update_seconds=update)
                lab.start_swift(options, click.echo)
                for trip, found in _measure_update(lab, update, out, gaps):
                    results[update, trip] = found
        write_page(PAGE, render(results) + gaps.sentence(), cost)


if __name__ == "__main__":
    main()
