"""Measures token calls on a cluster over two sites, and writes a page of it.

    python -m keylag_dev.galera_wan_page

Needs root and some eight minutes of an idle machine.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from keylag.lab.galera.lab import NODES, USERS, GaleraWan
from keylag.lab.galera.measurement import Latencies, Measured, measure
from keylag.lab.galera.options import ClusterOptions
from keylag.lab.galera.site import REVOCATION_EVENTS
from keylag.lab.link import Link, format_duration
from keylag.paths import CHECKOUT
from keylag.state import state_folder

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
directions, less what an idle cluster sends.
"""

Row = tuple[bool, Measured]
"""Whether each site was a segment, and what was measured."""


def render(rows: Sequence[Row]) -> str:
    """Return the page."""
    return "\n".join([*_lines(rows), ""])


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    yield INTRODUCTION
    headings = ("segments", "round trip", *METHODS, "writes", "a write, kB", "failed")
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * 2}{'---:|' * (len(headings) - 2)}"
    for segments, found in rows:
        cells = [
            "two" if segments else "one",
            format_duration(found.link.round_trip_seconds),
            *(_median(found, method) for method in METHODS),
            str(found.writes),
            f"{found.bytes_per_write / 1000:.1f}",
            str(sum(one.failed for one in found.calls.values())),
        ]
        yield f"| {' | '.join(cells)} |"


def _median(found: Measured, method: str) -> str:
    for label, one in found.calls.items():
        if label.startswith(f"{method} "):
            return _format(one)
    return "-"


def _format(one: Latencies) -> str:
    ms = one.median.scaled(1000)
    return f"{ms.mid:.0f} [{ms.low:.0f}, {ms.high:.0f}]"


@click.command()
def main() -> None:
    """Measure the cluster at several round trips, and write the page."""
    lab = GaleraWan(state_folder() / "labs" / "galera-wan-page")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as out:
        try:
            for segments in (True, False):
                lab.up(Link(), ClusterOptions(segments=segments), click.echo)
                for number, seconds in enumerate(ROUND_TRIPS_SECONDS):
                    folder = Path(out) / f"{segments}-{number}"
                    rows.append(
                        (segments, measure(lab, Link(seconds), SECONDS, folder))
                    )
                    click.echo(f"{segments}, {format_duration(seconds)}: measured")
        finally:
            lab.down()
    PAGE.write_text(render(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
