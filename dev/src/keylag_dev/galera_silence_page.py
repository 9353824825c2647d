"""Silences the link of a Galera cluster for some seconds, and writes a page.

    python -m keylag_dev.galera_silence_page

Needs root and some 11 minutes of an idle machine.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from keylag.lab.galera.failures import CLIENTS, Outcome, observe, silent_link
from keylag.lab.galera.lab import GaleraWan
from keylag.lab.galera.options import NODES, WAN_PROVIDER_OPTIONS, ClusterOptions
from keylag.lab.link import Link, format_duration
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.galera_settings_page import SETTINGS, count_changes
from keylag_dev.lab_page import Gaps, measuring, write_page

PAGE: Final = CHECKOUT / "docs" / "labs" / "galera-wan-silence.md"
LINK: Final = Link(0.1)
SILENCES_SECONDS: Final = (3, 7, 12)
"""Less than both values of `evs.suspect_timeout`, between them, and more than both."""
TIMES: Final = 2
_RANDOM: Final = random.Random(1)  # noqa: S311 - an order is no secret
ORDERS: Final = {
    name: _RANDOM.sample(SILENCES_SECONDS * TIMES, len(SILENCES_SECONDS) * TIMES)
    for name in SETTINGS
}
"""In which a cluster of each settings has the silences."""
SUSPECT: Final = "evs.suspect_timeout"
INTRODUCTION: Final = f"""\
# A link that is silent for some seconds

<!-- Made by `python -m keylag_dev.galera_silence_page`; run it again instead of
editing. -->

Two sites of {NODES} database nodes each, with a round trip of
{format_duration(LINK.round_trip_seconds)} between them; each site is a segment. The
link loses all packets for some seconds, and no node is lost. One cluster has Galera's
own settings, which suspect a node after 5 s (`{SUSPECT}`). The other one has [those of
the laboratory](galera-wan.md#the-settings-of-the-cluster), which do so after
{WAN_PROVIDER_OPTIONS[SUSPECT].removeprefix("PT").removesuffix("S")} s. Each had each
silence {TIMES} times, in random order, under the load of [lost nodes and
sites](galera-wan-failures.md): {CLIENTS} clients.

*Changes of the cluster* are how often it was formed anew, with a majority
(`wsrep_cluster_conf_id`). Without one, calls wait until the link is back, and then go
on. With one, each site is alone for a while and refuses calls: half of the nodes are no
majority. *Failed* are the calls from the silence until the load ended.
"""


@dataclass(frozen=True)
class Silence:
    """What a silence of the link cost a cluster."""

    settings: str
    """Key of SETTINGS."""
    seconds: int
    changes: int
    """How often the members of the cluster changed."""
    outcome: Outcome


def render(found: list[Silence]) -> str:
    """Return the page."""
    return "\n".join([*_lines(found), ""])


def _lines(found: list[Silence]) -> Iterator[str]:
    yield INTRODUCTION
    yield (
        "| silence | settings | changes of the cluster | failed | "
        "longest call, s | longest gap without a successful call, s |"
    )
    yield "|---:|---|---:|---:|---:|---:|"
    for one in sorted(found, key=lambda one: (one.seconds, one.settings)):
        cells = [
            f"{one.seconds} s",
            one.settings,
            str(one.changes),
            f"{one.outcome.failed} of {one.outcome.calls}",
            f"{one.outcome.longest_seconds:.1f}",
            f"{one.outcome.longest_gap_seconds:.1f}",
        ]
        yield f"| {' | '.join(cells)} |"


@click.command()
def main() -> None:
    """Silence the link of each cluster, and write the page."""
    lab = GaleraWan(state_folder() / "labs" / "galera-wan-page")
    found: list[Silence] = []
    gaps = Gaps()
    with measuring(lab) as (out, cost):
        for number, (name, provider) in enumerate(SETTINGS.items()):
            with gaps.noting(name):
                lab.up(LINK, ClusterOptions(provider=provider), click.echo)
                cost.note_start()
                found += _measure(lab, name, out / str(number), gaps)
        write_page(PAGE, render(found) + gaps.sentence(), cost)


def _measure(lab: GaleraWan, name: str, out: Path, gaps: Gaps) -> Iterator[Silence]:
    for turn, seconds in enumerate(ORDERS[name]):
        with gaps.reporting(f"{name}, {seconds} s"):
            before = count_changes(lab)
            outcome = observe(lab, silent_link(seconds), out / str(turn))
            yield Silence(name, seconds, count_changes(lab) - before, outcome)


if __name__ == "__main__":
    main()
