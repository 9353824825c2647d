"""Loses nodes, a link and a site under load, and writes a page of what that cost.

    python -m keylag_dev.galera_failures_page

Needs root and some 70 minutes of an idle machine.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

import click

from keylag.lab.galera.failures import (
    AFTER_SECONDS,
    CLIENTS,
    FAILURES,
    LOST_SECONDS,
    SHARES,
    Answers,
    Healing,
    Outcome,
    observe,
)
from keylag.lab.galera.lab import GaleraWan
from keylag.lab.galera.node import JOIN_SECONDS
from keylag.lab.galera.options import NODES, ClusterOptions
from keylag.lab.galera.site import REVOCATION_EVENTS
from keylag.lab.link import Link, format_duration
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.galera_rally_page import SEGMENTS
from keylag_dev.lab_page import Gaps, measuring, write_page
from keylag_dev.site_picture import IMAGES, SitePicture

PAGE: Final = CHECKOUT / "docs" / "labs" / "galera-wan-failures.md"
ROUND_TRIPS_SECONDS: Final = (0.1, 0.3, 0.5)
METHODS: Final = ("POST", "GET", "DELETE")
INTRODUCTION: Final = f"""\
# Lost nodes and sites of a Galera cluster

<!-- Made by `python -m keylag_dev.galera_failures_page`; run it again instead of
editing. -->

Two sites of {NODES} database nodes each, with a round trip between them; each site is
a segment, or all nodes are in one. {CLIENTS} clients send token calls to the Keystone
of site a: {SHARES["issue"]} % log in, {SHARES["validate"]} % validate, and
{SHARES["revoke"]} % revoke. Each failure was caused once in each row, and mended after
{LOST_SECONDS} s. The load ends {AFTER_SECONDS} s after all nodes are back. Each cluster
had the failures in a random order. Before each, there were {REVOCATION_EVENTS}
revocation events, and no user had logged in that day, so a first log-in commits.

*Failed* are the calls from the failure until the load ended; a client whose call fails
sends the next one at once, so the time from the first to the last failed call says
more. *Healed* is the time from the mending until all nodes are synced, with the search
of a killed node for its position in its data. *Donors* names each node that came back
and the one that gave it what it lacked, by the cluster's log. A row without figures
could not be measured, as when not all nodes were back after {JOIN_SECONDS} s.

*Served meanwhile* are the calls that were answered before the mending, of all that
ended until then. Keystone answers a validation from its cache if no token was revoked
since; all other calls need the database.

*Missing* are revocations that Keystone confirmed and a node lacks at the end.
Revocations that failed, and those on their way at the end, may be written all the same,
and hide as many.
"""


@dataclass(frozen=True)
class Variant:
    """A link between the sites, and whether each of them is a segment."""

    round_trip_seconds: float
    segments: bool

    @property
    def cells(self) -> list[str]:
        """Its cells of the table."""
        return [format_duration(self.round_trip_seconds), SEGMENTS[self.segments]]

    def up(self, lab: GaleraWan) -> None:
        """Start it, in place of one that runs; raises the errors of the laboratory."""
        options = ClusterOptions(segments=self.segments)
        lab.up(Link(self.round_trip_seconds), options, click.echo)


VARIANTS: Final = tuple(
    Variant(*one) for one in product(ROUND_TRIPS_SECONDS, (True, False))
)
_RANDOM: Final = random.Random(1)  # noqa: S311 - an order is no secret
ORDERS: Final = {one: _RANDOM.sample([*FAILURES], len(FAILURES)) for one in VARIANTS}
"""In which each cluster has the failures, by their keys."""
SHOWN: Final = VARIANTS[0]
"""The variant of the picture."""
PICTURE: Final = SitePicture(
    board="galera",
    file=IMAGES / "galera-failures.png",
    heading="The dashboard meanwhile",
    reading="\n".join(
        [
            "*Galera* at site a shows the first cluster, with these failures in turn:",
            "",
            *(f"1. {FAILURES[one].summary}" for one in ORDERS[SHOWN]),
            "",
            "The nodes are those behind the site's HAProxy.",
        ]
    ),
)

Outcomes = dict[tuple[str, Variant], Outcome]
"""By the key of FAILURES, and the variant."""


def render(outcomes: Outcomes) -> str:
    """Return the page without its picture."""
    return "\n".join([*_lines(outcomes), ""])


def _lines(outcomes: Outcomes) -> Iterator[str]:
    yield INTRODUCTION
    figures = (
        *(f"{method} served meanwhile" for method in METHODS),
        *("failed", "first to last failed call, s", "longest call, s"),
        "longest gap without a successful call, s",
        *("healed, s", "donors", "confirmed revocations missing"),
    )
    yield f"| failure | round trip | segments | {' | '.join(figures)} |"
    yield f"|---|---:|---|{'---:|' * len(figures)}"
    for (name, failure), variant in product(FAILURES.items(), VARIANTS):
        found = outcomes.get((name, variant))
        cells = _cells(found) if found else len(figures) * ["-"]
        yield f"| {' | '.join([failure.summary, *variant.cells, *cells])} |"


def _cells(found: Outcome) -> list[str]:
    codes = ", ".join(f"{code}: {count}" for code, count in found.codes.items())
    return [
        *(_served(found.meanwhile.get(method)) for method in METHODS),
        f"{found.failed} of {found.calls}" + (f" ({codes})" if codes else ""),
        f"{found.failing_seconds:.1f}",
        f"{found.longest_seconds:.1f}",
        f"{found.longest_gap_seconds:.1f}",
        f"{found.healing.seconds:.1f}",
        _donors(found.healing),
        f"{found.missing} of {found.revoked}; up to {found.hidden} could be hidden",
    ]


def _donors(healing: Healing) -> str:
    each = (f"{node}: {donor}" for node, donor in sorted(healing.donors.items()))
    return ", ".join(each) or "-"


def _served(found: Answers | None) -> str:
    return f"{found.served} of {found.ended}" if found else "-"


def cause_failures(
    lab: GaleraWan, variant: Variant, out: Path, gaps: Gaps
) -> dict[str, Outcome]:
    """Cause each failure of a cluster that runs; return what could be measured."""
    outcomes: dict[str, Outcome] = {}
    for name in ORDERS[variant]:
        failure = FAILURES[name]
        row = ", ".join([failure.summary, *variant.cells])
        with gaps.noting(row):
            outcomes[name] = observe(lab, failure, out / name)
            click.echo(f"{row}: {outcomes[name]}")
        if name not in outcomes:
            with gaps.noting(f"the start after: {row}"):
                variant.up(lab)
    return outcomes


@click.command()
def main() -> None:
    """Cause each failure of each cluster, and write the page."""
    lab = GaleraWan(state_folder() / "labs" / "galera-wan-page")
    outcomes: Outcomes = {}
    gaps = Gaps()
    with measuring(lab) as (out, cost):
        for number, variant in enumerate(VARIANTS):
            with gaps.noting(", ".join(variant.cells)):
                variant.up(lab)
                cost.note_start()
                begun = time.time()
                found = cause_failures(lab, variant, out / str(number), gaps)
                outcomes |= {(name, variant): one for name, one in found.items()}
                if variant == SHOWN:
                    site = lab.router(1)
                    with gaps.noting("the picture of the dashboard"):
                        PICTURE.take(lab.folder, site, begun)
        page = render(outcomes) + PICTURE.section(PAGE) + gaps.sentence()
        write_page(PAGE, page, cost)


if __name__ == "__main__":
    main()
