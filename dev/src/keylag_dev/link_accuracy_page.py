"""Measures the link of `keylag lab wan` at several settings, and writes a page of it.

    python -m keylag_dev.link_accuracy_page

Needs root and some four minutes of an idle machine.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from keylag.lab.accuracy import Figure, measure
from keylag.lab.iproute import command_in, run
from keylag.lab.link import Link, format_rate
from keylag.lab.network import Network
from keylag.lab.wan import Wan
from keylag.paths import CHECKOUT

PAGE: Final = CHECKOUT / "docs" / "labs" / "link-accuracy.md"
LINKS: Final = (
    Link(),
    Link(0.01),
    Link(0.1),
    Link(0.277),
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
INTRODUCTION: Final = """\
# How accurate the link of `keylag lab wan` is

<!-- Made by `python -m keylag_dev.link_accuracy_page`; run it again instead of
editing. -->

Each setting is that of a link between two hosts, each behind a router.
*ping* is the mean of 40 round trips, *handshake* the median of 20 TCP connections.
*Rate* is what arrives at the far router in 5 s while 1.3 times as much is sent.
A figure is accurate if it differs by at most 2 %, or by at most 1 ms; with jitter, also
by 2.5 standard errors.
"""


def render(measured: Sequence[tuple[Link, Sequence[Figure]]], fastest: float) -> str:
    """Return the page of links and their figures, and of the fastest transfer."""
    return "\n".join([*_lines(measured), "", _summary(measured, fastest), ""])


def _lines(measured: Sequence[tuple[Link, Sequence[Figure]]]) -> Iterator[str]:
    yield INTRODUCTION
    yield "| link | ping, ms | handshake, ms | rate, Mbit/s | accurate |"
    yield "|---|---:|---:|---:|---|"
    for link, figures in measured:
        ping, handshake, *rates = (one.measured for one in figures)
        rate = f"{rates[0] / 1e6:#.4g}" if rates else "-"
        accurate = "yes" if all(one.is_accurate for one in figures) else "**no**"
        cells = [str(link), f"{ping * 1000:.1f}", f"{handshake * 1000:.1f}"]
        yield f"| {' | '.join([*cells, rate, accurate])} |"


def _summary(measured: Sequence[tuple[Link, Sequence[Figure]]], fastest: float) -> str:
    figures = [one for _, found in measured for one in found]
    accurate = sum(one.is_accurate for one in figures)
    return (
        f"{accurate} of {len(figures)} figures are accurate. "
        f"Without a limit, a TCP connection carried {format_rate(round(fastest, -6))}."
    )


def measure_fastest(network: Network) -> float:
    """Return the bits per second of a TCP connection over a link without a limit."""
    near, far = (site.hosts[0] for site in network.sites)
    serve = ["iperf3", "--server", "--daemon", "--one-off", "--port", str(PORT)]
    run(*command_in(far.namespace, serve))
    send = ["iperf3", "--json", "--client", far.address, "--port", str(PORT)]
    told = json.loads(run(*command_in(near.namespace, [*send, f"--time={SECONDS}"])))
    rate: float = told["end"]["sum_received"]["bits_per_second"]
    return rate


@click.command()
def main() -> None:
    """Measure the link at several settings, and write docs/labs/link-accuracy.md."""
    with tempfile.TemporaryDirectory() as folder:
        lab = Wan(Path(folder).resolve())
        try:
            lab.up(1, Link())
            fastest = measure_fastest(lab.network())
            measured = []
            for link in LINKS:
                lab.change(link)
                measured.append((link, measure(lab.network(), link)))
                click.echo(f"{link}: {len(measured)} of {len(LINKS)}")
        finally:
            lab.down()
    PAGE.write_text(render(measured, fastest), encoding="utf-8")


if __name__ == "__main__":
    main()
