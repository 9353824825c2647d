"""Measures token calls on a cluster over two sites, and writes a page of it.

    python -m keylag_dev.galera_wan_page

Needs root and some 25 minutes of an idle machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from keylag.lab.galera.lab import USERS, GaleraWan
from keylag.lab.galera.measurement import Measured, measure
from keylag.lab.galera.options import NODES, ClusterOptions
from keylag.lab.galera.site import REVOCATION_EVENTS
from keylag.lab.iproute import LabError
from keylag.lab.link import Link, format_duration
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.lab_page import measuring, milliseconds, write_page

PAGE: Final = CHECKOUT / "docs" / "labs" / "galera-wan-results.md"
ROUND_TRIPS_SECONDS: Final = (0.0, 0.1, 0.2, 0.3, 0.5)
SECONDS: Final = 15
METHODS: Final = ("POST", "GET", "DELETE")
INTRODUCTION: Final = f"""\
# Token calls on a Galera cluster over two sites

<!-- Made by `python -m keylag_dev.galera_wan_page`; run it again instead of
editing. -->

Two sites of {NODES} database nodes each, with {USERS} users and {REVOCATION_EVENTS}
revocation events at the start. One client sends calls to the Keystone of site a for
{SECONDS} s: a quarter logs in, half validates, a quarter revokes.

Each figure of a call is the median at the client in ms, with its interval at 95 %.
*A write* is a transaction of the cluster. Its kB are those over the link in both
directions, less what an idle cluster sends. *Named* is what `keylag diagnose` says at
site a. A row without figures: the load could not be sent, as when its log-ins take
longer than {SECONDS} s.
"""
VARIANTS: Final[Mapping[str, ClusterOptions]] = {
    "two segments": ClusterOptions(),
    "one segment": ClusterOptions(segments=False),
    "reads wait (`mysql_wsrep_sync_wait`)": ClusterOptions(sync_wait=True),
    "the database of site b": ClusterOptions(far_database=True),
    "no cache": ClusterOptions(cache="null"),
    "no cache, the database of site b": ClusterOptions(cache="null", far_database=True),
}
"""What site a has, each with two segments unless it says otherwise."""

Row = tuple[str, Link, Measured | None]
"""A variant, the link, and what was measured; None if the load did not begin."""


def render(rows: Sequence[Row]) -> str:
    """Return the page."""
    return "\n".join([*_lines(rows), ""])


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    yield INTRODUCTION
    headings = ("variant", "round trip", *METHODS, "writes", "a write, kB", "failed")
    yield f"| {' | '.join((*headings, 'named'))} |"
    yield f"|{'---|' * 2}{'---:|' * (len(headings) - 2)}---|"
    for name, link, found in rows:
        figures = _figures(found) if found else (len(headings) - 1) * ["-"]
        cells = (name, format_duration(link.round_trip_seconds), *figures)
        yield f"| {' | '.join(cells)} |"


def _figures(found: Measured) -> list[str]:
    return [
        *(_median(found, method) for method in METHODS),
        str(found.writes),
        f"{found.bytes_per_write / 1000:.1f}",
        str(sum(one.failed for one in found.calls.values())),
        ", ".join(found.causes) or "-",
    ]


def _median(found: Measured, method: str) -> str:
    for label, one in found.calls.items():
        if label.startswith(f"{method} "):
            return milliseconds(one.median)
    return "-"


def _measure(lab: GaleraWan, link: Link, folder: Path) -> Measured | None:
    try:
        found = measure(lab, link, SECONDS, folder)
    except LabError as error:
        click.echo(error)
        return None
    click.echo(f"{format_duration(link.round_trip_seconds)}: measured")
    return found


@click.command()
def main() -> None:
    """Measure the cluster at several round trips, and write the page."""
    lab = GaleraWan(state_folder() / "labs" / "galera-wan-page")
    rows: list[Row] = []
    with measuring(lab) as (out, cost):
        for variant, (name, options) in enumerate(VARIANTS.items()):
            lab.up(Link(), options, click.echo)
            click.echo(name)
            cost.note_start()
            for number, seconds in enumerate(ROUND_TRIPS_SECONDS):
                folder = out / f"{variant}-{number}"
                found = _measure(lab, Link(seconds), folder)
                rows.append((name, Link(seconds), found))
    write_page(PAGE, render(rows), cost)


if __name__ == "__main__":
    main()
