"""Measures the link of `keylag lab wan` at several settings, and writes a page of it.

    python -m keylag_dev.link_accuracy_page

Needs root and some seven minutes of an idle machine.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import click

from keylag.lab.accuracy import (
    HANDSHAKE_TIME,
    HANDSHAKES,
    JITTER,
    JITTER_HANDSHAKES,
    JITTER_PINGS,
    LOSS,
    LOSS_PINGS,
    PING,
    PINGS,
    STANDARD_ERRORS,
    SURPLUS,
    THROUGHPUT,
    TRANSFER_SECONDS,
    Figure,
    measure,
)
from keylag.lab.iproute import command_in, run
from keylag.lab.link import Link
from keylag.lab.network import Network
from keylag.lab.wan import Wan
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.lab_page import Gaps, measuring, write_page

PAGE: Final = CHECKOUT / "docs" / "labs" / "link-accuracy.md"
LINKS: Final = (
    Link(),
    Link(0.01),
    Link(0.1),
    Link(0.2),
    Link(0.277),
    Link(0.3),
    Link(0.4),
    Link(0.5),
    Link(0.1, jitter_seconds=0.02),
    Link(0.1, loss_ratio=0.01),
    Link(0.01, rate_bits_per_second=100e6),
    Link(0.1, rate_bits_per_second=6e6),
    Link(0.277, rate_bits_per_second=6e6),
    Link(0.5, rate_bits_per_second=1e6),
)
PORT: Final = 5201
SECONDS: Final = 5
OMITTED_SECONDS: Final = 3
"""In which a connection learns how much it may send."""
INTRODUCTION: Final = f"""\
# How accurate the link of `keylag lab wan` is

<!-- Made by `python -m keylag_dev.link_accuracy_page`; run it again instead of
editing. -->

Each setting is that of a link between two hosts, each behind a router.
*Ping* is the mean of {PINGS} round trips, *handshake* the median of {HANDSHAKES} TCP
connections; with jitter, of {JITTER_PINGS} round trips and {JITTER_HANDSHAKES}
connections. One that lost a packet does not count. *Jitter* is by how much a round
trip differs at most, from the standard deviation of those pings. *Loss* is the share
that one direction loses, from the answers to {LOSS_PINGS} pings. *Rate* is what arrives
at the far router in {TRANSFER_SECONDS} s while {SURPLUS} times as much is sent. *One
connection* is what a TCP connection carries in {SECONDS} s, after {OMITTED_SECONDS} s
in which it begins; a setting expects no figure of it, so it is not judged.

A figure is accurate if it differs by at most 2 % or 1 ms. Those of random packets,
which are all with jitter and that of the loss, may differ by {STANDARD_ERRORS} standard
errors more.
"""
COLUMNS: Final = {
    PING: ("ping, ms", 1000, ".1f"),
    HANDSHAKE_TIME: ("handshake, ms", 1000, ".1f"),
    JITTER: ("jitter, ms", 1000, ".1f"),
    LOSS: ("loss, %", 100, ".2f"),
    THROUGHPUT: ("rate, Mbit/s", 1e-6, "#.4g"),
}
"""Title, factor and format of each figure."""


@dataclass(frozen=True)
class Measured:
    """What was measured of a link."""

    link: Link
    figures: Sequence[Figure]
    connection: float
    """Bits per second of one TCP connection."""

    @property
    def cells(self) -> Iterator[str]:
        """Yield the cells of a table."""
        found = {one.name: one.measured for one in self.figures}
        yield str(self.link)
        for name, (_, factor, form) in COLUMNS.items():
            yield format(found[name] * factor, form) if name in found else "-"
        yield f"{self.connection / 1e6:.1f}"
        is_accurate = all(one.is_accurate for one in self.figures)
        yield "yes" if is_accurate else "**no**"


def render(measured: Sequence[Measured]) -> str:
    """Return the page of links and their figures."""
    titles = [*(title for title, *_ in COLUMNS.values()), "one connection, Mbit/s"]
    figures = [figure for one in measured for figure in one.figures]
    accurate = sum(one.is_accurate for one in figures)
    return "\n".join(
        [
            INTRODUCTION,
            f"| {' | '.join(['link', *titles, 'accurate'])} |",
            f"|---|{'---:|' * len(titles)}---|",
            *(f"| {' | '.join(one.cells)} |" for one in measured),
            "",
            f"{accurate} of {len(figures)} figures are accurate.",
            "",
        ]
    )


def measure_connection(network: Network) -> float:
    """Return the bits per second of a TCP connection; raises LabError."""
    near, far = (site.hosts[0] for site in network.sites)
    serve = ["iperf3", "--server", "--daemon", "--one-off", "--port", str(PORT)]
    run(*command_in(far.namespace, serve))
    send = [
        *("iperf3", "--json", "--client", far.address, "--port", str(PORT)),
        *(f"--omit={OMITTED_SECONDS}", f"--time={SECONDS}"),
    ]
    told = json.loads(run(*command_in(near.namespace, send)))
    rate: float = told["end"]["sum_received"]["bits_per_second"]
    return rate


@click.command()
def main() -> None:
    """Measure the link at several settings, and write docs/labs/link-accuracy.md."""
    lab = Wan(state_folder() / "labs" / "link-page")
    measured: list[Measured] = []
    gaps = Gaps()
    with measuring(lab) as (_, cost):
        lab.up(1, Link())
        cost.note_start()
        for link in LINKS:
            with gaps.noting(str(link)):
                lab.change(link)
                figures = measure(lab.network(), link)
                connection = measure_connection(lab.network())
                measured.append(Measured(link, figures, connection))
                click.echo(f"{link}: {len(measured)} of {len(LINKS)}")
        write_page(PAGE, render(measured) + gaps.sentence(), cost)


if __name__ == "__main__":
    main()
