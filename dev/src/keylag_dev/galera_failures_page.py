"""Loses nodes, a link and a site under load, and writes a page of what that cost.

    python -m keylag_dev.galera_failures_page

Needs root and some 15 minutes of an idle machine.
"""

import time
from collections.abc import Iterator
from typing import Final

import click

from keylag.lab.galera.failures import (
    AFTER_SECONDS,
    CLIENTS,
    FAILURES,
    HEAL_SECONDS,
    LOST_SECONDS,
    Outcome,
    observe,
)
from keylag.lab.galera.lab import GaleraWan
from keylag.lab.galera.options import NODES, ClusterOptions
from keylag.lab.link import Link, format_duration
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.lab_page import Gaps, measuring, write_page
from keylag_dev.site_picture import IMAGES, SitePicture

PAGE: Final = CHECKOUT / "docs" / "labs" / "galera-wan-failures.md"
LINK: Final = Link(0.1)
INTRODUCTION: Final = f"""\
# Lost nodes and sites of a Galera cluster

<!-- Made by `python -m keylag_dev.galera_failures_page`; run it again instead of
editing. -->

Two sites of {NODES} database nodes each, with a round trip of
{format_duration(LINK.round_trip_seconds)} between them. {CLIENTS} clients send token
calls to the Keystone of site a: a quarter logs in, half validates, a quarter revokes.
Each failure was caused once, and mended after {LOST_SECONDS} s. The load ends
{AFTER_SECONDS} s after all nodes are back.

*Failed* are the calls from the failure until the load ended; a client whose call fails
sends the next one at once, so the time from the first to the last failed call says
more. *Healed* is the time from the mending until all nodes are synced, with the search
of a killed node for its position in its data. A row without figures could not be
measured, as when not all nodes were back after {HEAL_SECONDS} s.

*Missing* are revocations that Keystone confirmed and a node lacks at the end.
Revocations that failed, and those on their way at the end, may be written all the same,
and hide as many.
"""

PICTURE: Final = SitePicture(
    board="galera",
    file=IMAGES / "galera-failures.png",
    heading="The dashboard meanwhile",
    reading="""\
*Galera* at site a shows all failures in the order of the table, with the nodes behind
the site's HAProxy.""",
)

Outcomes = dict[str, Outcome]
"""By the keys of FAILURES."""


def render(outcomes: Outcomes) -> str:
    """Return the page."""
    return "\n".join([*_lines(outcomes), ""])


def _lines(outcomes: Outcomes) -> Iterator[str]:
    yield INTRODUCTION
    headings = (
        *("failure", "failed", "first to last failed call, s", "longest call, s"),
        "longest gap without a successful call, s",
        *("healed, s", "confirmed revocations missing"),
    )
    yield f"| {' | '.join(headings)} |"
    yield f"|---|{'---:|' * (len(headings) - 1)}"
    for name, failure in FAILURES.items():
        found = outcomes.get(name)
        cells = _cells(found) if found else (len(headings) - 1) * ["-"]
        yield f"| {' | '.join([failure.summary, *cells])} |"


def _cells(found: Outcome) -> list[str]:
    return [
        f"{found.failed} of {found.calls}",
        f"{found.failing_seconds:.1f}",
        f"{found.longest_seconds:.1f}",
        f"{found.longest_gap_seconds:.1f}",
        f"{found.heal_seconds:.1f}",
        f"{found.missing} of {found.revoked}; up to {found.hidden} could be hidden",
    ]


@click.command()
def main() -> None:
    """Cause each failure, and write the page."""
    lab = GaleraWan(state_folder() / "labs" / "galera-wan-page")
    outcomes: Outcomes = {}
    gaps = Gaps()
    with measuring(lab) as (out, cost):
        lab.up(LINK, ClusterOptions(), click.echo)
        cost.note_start()
        begun = time.time()
        for name, failure in FAILURES.items():
            with gaps.noting(failure.summary):
                outcomes[name] = observe(lab, failure, out / name)
                click.echo(f"{name}: {outcomes[name]}")
            if name not in outcomes:
                with gaps.noting(f"the start after {name}"):
                    lab.up(LINK, ClusterOptions(), click.echo)
        with gaps.noting("the picture of the dashboard"):
            PICTURE.take(lab.folder, lab.wan.network().sites[0].router, begun)
        page = render(outcomes) + PICTURE.section(PAGE) + gaps.sentence()
        write_page(PAGE, page, cost)


if __name__ == "__main__":
    main()
