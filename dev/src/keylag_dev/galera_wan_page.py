"""Measures token calls on a cluster over two sites, and writes a page of it.

    python -m keylag_dev.galera_wan_page

Needs root and some 45 minutes of an idle machine.
"""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

import click

from keylag.lab.galera.lab import USERS, GaleraWan
from keylag.lab.galera.measurement import SHARES, Measured, measure
from keylag.lab.galera.options import NODES, ClusterOptions
from keylag.lab.galera.site import REVOCATION_EVENTS
from keylag.lab.link import Link, format_duration
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.lab_page import Gaps, measuring, milliseconds, write_page
from keylag_dev.lab_rules_page import COMMITS, Trial
from keylag_dev.site_fault import FLUSHED, FLUSHES, planted

PAGE: Final = CHECKOUT / "docs" / "labs" / "galera-wan-results.md"
ROUND_TRIPS_SECONDS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
SECONDS: Final = 15
FAR_SECONDS: Final = 60
"""With a far database, which serves few calls."""
FAR_UNCACHED_SECONDS: Final = 180
"""And without a cache, which serves fewer."""
METHODS: Final = ("POST", "GET", "DELETE")
FIGURES: Final = 2 * len(METHODS) + 4
"""Columns of the table with numbers."""
INTRODUCTION: Final = f"""\
# Token calls on a Galera cluster over two sites

<!-- Made by `python -m keylag_dev.galera_wan_page`; run it again instead of
editing. -->

Two sites of {NODES} database nodes each, with {USERS} users and {REVOCATION_EVENTS}
revocation events before each load. One client sends calls to the Keystone of site a for
{SECONDS} s, for {FAR_SECONDS} s with the database of site b, and for
{FAR_UNCACHED_SECONDS} s with that database and no cache: {SHARES["issue"]} % log in,
{SHARES["validate"]} % validate, and {SHARES["revoke"]} % revoke. The round trips of a
variant follow each other in random order. A cache that is emptied all the time has
the fault {FLUSHED}, with {FLUSHES}. With clients at both sites, one at site b sends the
same calls meanwhile, with the same users in the same order; the times are those at
site a.

Calls without a round trip fill the caches before the first load of a variant. Before
each load, no user has logged in that day, and each logs in once at most. So each
log-in is the first of its user's day, which commits; a repeated one writes nothing.

Each figure of a call is the median at the client in ms, with its interval at 95 %. *Its
SQL* is the median of the time in SQL of Keystone's breakdown, in which commits wait,
without that of the revocation check.
*A write* is a transaction of the cluster. Its kB are those over the link in both
directions, less what an idle cluster sends; with a far database, statements pass the
link, too. *Conflicts* are transactions that Galera refused because another node wrote
the same row (`wsrep_local_cert_failures` and `wsrep_local_bf_aborts`). *Failed* calls
are those of both sites. A row without figures could not be measured, as when log-ins
take longer than the load.

*Causes named* are those of `keylag diagnose` at site a, the likeliest first. The *cause
expected* is what the variant makes, and should be the first; without one, none should
be named. With a round trip {COMMITS} may be named at any place: commits wait for the
other site. D1 and D8 are not judged without a round trip, where they cost
little.
"""


@dataclass(frozen=True)
class Variant:
    """Options of the cluster, and the id of the cause that they make, if any."""

    options: ClusterOptions
    cause: str = ""
    fault: str = ""
    """Key of a fault that site a has meanwhile."""
    both_sites: bool = False
    """Whether a client at site b sends calls, too."""
    seconds: int = SECONDS
    """How long calls are sent at each round trip."""
    round_trips_seconds: tuple[float, ...] = ROUND_TRIPS_SECONDS


VARIANTS: Final[Mapping[str, Variant]] = {
    "two segments": Variant(ClusterOptions()),
    "one segment": Variant(ClusterOptions(segments=False)),
    "clients at both sites": Variant(ClusterOptions(), both_sites=True),
    "`mysql_wsrep_sync_wait = 1`": Variant(ClusterOptions(sync_wait=True), "D8"),
    "the database of site b": Variant(
        ClusterOptions(far_database=True), "D1", seconds=FAR_SECONDS
    ),
    "a cache that is emptied all the time": Variant(ClusterOptions(), "C8", FLUSHED),
    "no cache": Variant(ClusterOptions(cache="null"), "C1"),
    "no cache, the database of site b": Variant(
        ClusterOptions(cache="null", far_database=True),
        "D1",
        seconds=FAR_UNCACHED_SECONDS,
        # With more, the load has too few log-ins.
        round_trips_seconds=ROUND_TRIPS_SECONDS[:2],
    ),
}
"""What site a has, each with two segments unless it says otherwise."""
BY_DISTANCE: Final = ("D1", "D8")
"""Causes that cost little without a round trip."""

Results = dict[tuple[str, float], Measured]
"""What was measured of a variant at a round trip in seconds."""


def render(results: Results) -> str:
    """Return the page."""
    return "\n".join([*_lines(results), ""])


def _lines(results: Results) -> Iterator[str]:
    yield INTRODUCTION
    calls = (f"{one} | its SQL" for one in METHODS)
    figures = (*calls, "writes", "a write, kB", "conflicts", "failed")
    judged = ("cause expected", "causes named", "right")
    yield f"| {' | '.join(('variant', 'round trip', *figures, *judged))} |"
    yield f"|{'---|' * 2}{'---:|' * FIGURES}{'---|' * len(judged)}"
    for name, variant in VARIANTS.items():
        for seconds in variant.round_trips_seconds:
            found = results.get((name, seconds))
            cells = (
                [*_figures(found), *_judged(variant, seconds, found)]
                if found
                else ["-"] * (FIGURES + len(judged))
            )
            yield f"| {' | '.join((name, format_duration(seconds), *cells))} |"


def _figures(found: Measured) -> list[str]:
    return [
        *(cell for method in METHODS for cell in _times(found, method)),
        str(found.writes),
        _kilobytes(found.bytes_per_write),
        str(found.conflicts),
        str(found.failed),
    ]


def _judged(variant: Variant, seconds: float, found: Measured) -> list[str]:
    """Return what was expected and named, and whether that is right."""
    may = (COMMITS,) if seconds else ()
    named, verdict = Trial(variant.cause, "", "", found.causes, may_be_named=may).cells
    is_open = variant.cause in BY_DISTANCE and not seconds
    return [variant.cause or "-", named, "-" if is_open else verdict]


def _kilobytes(size: float | None) -> str:
    return "-" if size is None else f"{size / 1000:.1f}"


def _times(found: Measured, method: str) -> tuple[str, str]:
    """Return the cells of a kind of calls: at the client, and in SQL."""
    for label, one in found.calls.items():
        if label.startswith(f"{method} "):
            sql = "-" if one.sql_seconds is None else f"{one.sql_seconds * 1000:.0f}"
            return milliseconds(one.median), sql
    return "-", "-"


def _measure_variant(
    lab: GaleraWan, name: str, folders: Iterator[Path], gaps: Gaps
) -> Iterator[tuple[float, Measured]]:
    """Yield each round trip that could be measured, and its figures."""
    variant = VARIANTS[name]
    round_trips = variant.round_trips_seconds
    send_calls = partial(measure, lab, both_sites=variant.both_sites)
    with gaps.noting(f"{name}, calls that fill the cache"):
        send_calls(Link(), SECONDS, next(folders))
    order = Random(name)  # noqa: S311 - an order is no secret
    for seconds in order.sample(round_trips, len(round_trips)):
        row = f"{name}, {format_duration(seconds)}"
        with gaps.reporting(row):
            lab.cluster().forget_log_ins()
            lab.cluster().limit_events(REVOCATION_EVENTS)
            found = send_calls(Link(seconds), variant.seconds, next(folders))
            yield seconds, found


@click.command()
def main() -> None:
    """Measure the cluster at several round trips, and write the page."""
    lab = GaleraWan(state_folder() / "labs" / "galera-wan-page")
    results: Results = {}
    gaps = Gaps()
    with measuring(lab) as (out, cost):
        folders = (out / str(number) for number in count())
        for name, variant in VARIANTS.items():
            with gaps.noting(name):
                lab.up(Link(), variant.options, click.echo)
                cost.note_start()
                site = lab.router(1)
                fault = variant.fault
                with planted(lab.folder, site, fault) if fault else nullcontext():
                    for seconds, found in _measure_variant(lab, name, folders, gaps):
                        results[name, seconds] = found
        write_page(PAGE, render(results) + gaps.sentence(), cost)


if __name__ == "__main__":
    main()
