"""Tries rules of the diagnosis on laboratories, at several strengths each.

    python -m keylag_dev.lab_rules_page

Needs root and some 17 minutes of an idle machine.  D1 and D8 are tried by
`keylag_dev.galera_wan_page`.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from typing import Final

import click
import pymysql

from keylag.beside import beside
from keylag.breakdown import parse_label
from keylag.experiment.interval import Interval
from keylag.faults import cluster_writes
from keylag.faults.catalogue import galera_flow_control
from keylag.faults.helpers.duty_cycle import suspend
from keylag.faults.site import HERE_ONLY
from keylag.lab.galera import haproxy
from keylag.lab.galera.lab import GaleraWan
from keylag.lab.galera.measurement import diagnose, measure
from keylag.lab.galera.node import AFTER_ALL_WRITES, Node
from keylag.lab.galera.options import ClusterOptions
from keylag.lab.galera.site import site_folder
from keylag.lab.iproute import command_in
from keylag.lab.link import Link, format_duration
from keylag.lab.network import Host
from keylag.lab.swift.lab import SwiftRegions
from keylag.lab.swift.measurement import Load
from keylag.lab.swift.measurement import measure as measure_objects
from keylag.lab.swift.options import FAR, NEAR, NO_CACHE, SETS, SwiftOptions
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.lab_page import Gaps, measuring, milliseconds, write_page

PAGE: Final = CHECKOUT / "docs" / "labs" / "rules.md"
DATABASE: Final = "keystone"
SECONDS: Final = 30
LINK: Final = Link(0.02)
SLOW_WRITES: Final = (
    *((one, LINK) for one in (50, 100, 150, 200)),
    (250, Link(0.1)),
    (750, Link(0.3)),
)
"""How many ms each takes, longer than a commit, which lasts a round trip."""
PROBED_ROUND_TRIPS_SECONDS: Final = (0.02, 0.1, 0.2)
"""Short enough for site a's Prometheus, whose scrape of the probe ends after 1 s."""
MEASURED_REGION: Final = 2
TOKEN_CACHES: Final = (
    (SwiftOptions(cached_seconds=1), LINK),
    (SwiftOptions(token_cache=NO_CACHE), LINK),
    (SwiftOptions(token_cache=NO_CACHE, keystone=FAR), LINK),
    (SwiftOptions(token_cache=NO_CACHE, keystone=FAR), Link(0.1)),
)
"""From cheap to expensive validations."""
STALLED_SHARES: Final = (0.2, 0.3, 0.5, 0.8)
STALL_PERIOD_SECONDS: Final = 1.0
COMMITS: Final = "D2"
"""The cause that commits wait."""
PROBE_PORT: Final = 9115
INTRODUCTION: Final = f"""\
# Rules of the diagnosis, tried on laboratories

<!-- Made by `python -m keylag_dev.lab_rules_page`; run it again instead of editing. -->

Each cause was made at several strengths, under load for {SECONDS} s. *Causes named* are
those of `keylag diagnose` then, the likeliest first. The rule of a row should be named
first; in a row without one, nothing should be named. {COMMITS} may be named at any
place where another client writes: commits wait for that, and for the other site.
*Calls* are times at a client in ms, with their intervals at 95 %: the median of each
token call, sent at site a, and the mean of each call of an object, sent in region 2.

The sites have a round trip of {format_duration(LINK.round_trip_seconds)}, unless the
strength says otherwise. For M1 it is how long the proxies of region 2 keep a token,
and whether they ask a near Keystone, or that of region 1 at this round trip.
b1 applies writes slowly because of a trigger that waits; it asks for a pause as soon as
one write waits (`gcs.fc_limit = 1`).

D1 and D8 are tried in [token calls at each round trip](galera-wan-results.md).

| rule | cause | strength | calls | causes named | right |
|---|---|---|---|---|---|
"""


Named = tuple[str, ...] | None
"""What was named, the likeliest first; None if the calls could not be diagnosed."""

Times = Mapping[str, Interval]
"""What calls take at the client in seconds, by their method."""


@dataclass(frozen=True)
class Trial:
    """A cause at a strength, and what was named."""

    rule: str
    """Empty for a healthy laboratory."""
    cause: str
    strength: str
    named: Named = None
    times: Times = field(default_factory=dict)
    may_be_named: tuple[str, ...] = ()
    """Causes that are there as well, whether they cost enough to be named or not."""

    @property
    def title(self) -> str:
        """The cause at its strength."""
        return f"{self.rule or 'healthy'}, {self.cause}, {self.strength}"

    @property
    def is_right(self) -> bool:
        """Whether its rule was named first, or nothing where nothing is wrong."""
        if self.named is None:
            return False
        others = [one for one in self.named if one not in self.may_be_named]
        return others[:1] == ([self.rule] if self.rule else [])

    @property
    def cells(self) -> list[str]:
        """What was named, and whether it is right, for a table."""
        if self.named is None:
            return ["unknown", "-"]
        return [", ".join(self.named) or "-", "yes" if self.is_right else "**no**"]


Planted = tuple[Trial, Callable[[], tuple[Named, Times]]]
"""A cause that a laboratory has now, and how to find out what is named."""


def render(trials: Sequence[Trial]) -> str:
    """Return the page."""
    right = sum(one.is_right for one in trials)
    lines = [
        f"| {one.rule or '-'} | {one.cause} | {one.strength} "
        f"| {_times(one.times)} | {' | '.join(one.cells)} |"
        for one in trials
    ]
    summary = f"\n{right} of {len(trials)} rows are right.\n"
    return INTRODUCTION + "\n".join([*lines, summary])


def _times(times: Times) -> str:
    shown = [f"{method} {milliseconds(one)}" for method, one in times.items()]
    return ", ".join(shown) or "-"


def plant_flow_control(lab: GaleraWan, out: Path) -> Iterator[Planted]:
    """Yield a far node that is slow (D9)."""
    first, slow = lab.cluster().nodes[0], lab.cluster().nodes_of(1)[0]
    first.query(cluster_writes.CREATE, database=DATABASE)
    # A user's first log-in of a day commits, and the rows should not differ by it.
    measure(lab, LINK, SECONDS, out / "first-log-ins")
    writes = partial(_write_all_the_time, first)
    with _beside(writes):
        healthy = partial(_measure_calls, lab, LINK, out / "healthy")
        cause = "another client writes all the time"
        yield Trial("", cause, "-", may_be_named=(COMMITS,)), healthy
    for slow_ms, link in SLOW_WRITES:
        lab.wan.change(link)
        with _slow_writes(slow, slow_ms), _beside(writes):
            calls = partial(_measure_calls, lab, link, out / str(slow_ms))
            trial = Trial(
                "D9",
                "b1 applies writes slowly",
                f"{slow_ms} ms for each write, {link}",
                may_be_named=(COMMITS,),
            )
            yield trial, calls


@contextmanager
def _slow_writes(node: Node, slow_ms: int) -> Iterator[None]:
    """Let a node apply the writes of others slowly while the body runs.

    No write may be on its way when this begins and when the body ends: to apply it, a
    node would end the statements that change its table.
    """
    slow = galera_flow_control.slow_node(slow_ms)
    usual = galera_flow_control.usual_node()
    node.query(AFTER_ALL_WRITES, "SELECT 1")
    node.query(*HERE_ONLY, *slow, database=DATABASE)
    try:
        yield
    finally:
        node.query(AFTER_ALL_WRITES, "SELECT 1")
        node.query(*HERE_ONLY, *usual, database=DATABASE)


def _measure_calls(lab: GaleraWan, link: Link, out: Path) -> tuple[Named, Times]:
    found = measure(lab, link, SECONDS, out)
    times = {parse_label(label)[0]: one.median for label, one in found.calls.items()}
    return found.causes, times


def _beside(work: Callable[[Iterator[int]], None]) -> AbstractContextManager[None]:
    """Do work in a thread; the turns that it gets last until the context ends."""
    return beside(lambda ended: work(takewhile(lambda _: not ended.is_set(), count())))


def _write_all_the_time(node: Node, turns: Iterator[int]) -> None:
    """Write at a node, as another service of the cloud."""
    for _ in turns:
        with suppress(pymysql.MySQLError):
            node.query(cluster_writes.WRITE, database=DATABASE)


def plant_network(lab: GaleraWan, out: Path) -> Iterator[Planted]:
    """Yield a probe at site b of the Keystone of site a (N1)."""
    first, second = (one.router for one in lab.wan.network().sites)
    with _probe(lab, first, second):
        for seconds in PROBED_ROUND_TRIPS_SECONDS:
            link = Link(seconds)
            calls = partial(_measure_calls, lab, link, out / str(seconds))
            yield Trial("N1", "a probe at site b asks site a", str(link)), calls


@contextmanager
def _probe(lab: GaleraWan, keystone: Host, client: Host) -> Iterator[None]:
    """Run a probe on a router, and let the other site's Prometheus read it."""
    command = [
        *(str(Path(sys.executable).with_name("keylag-exporter")), "probe"),
        *("--url", f"{haproxy.keystone_url(keystone)}/v3", "--interval", "1"),
        *("--listen", f"{client.address}:{PROBE_PORT}"),
    ]
    targets = site_folder(lab.folder, keystone.name) / "prometheus" / "targets"
    file = targets / "keylag-exporter.json"
    before = file.read_text()
    added = {"targets": [f"{client.address}:{PROBE_PORT}"]}
    with subprocess.Popen(command_in(client.namespace, command)) as probe:
        try:
            file.write_text(json.dumps([*json.loads(before), added]))
            yield
        finally:
            file.write_text(before)
            probe.terminate()


def plant_token_cache(lab: SwiftRegions, out: Path) -> Iterator[Planted]:
    """Yield proxies that keep tokens for a short time or not (M1), after usual ones."""
    usual = partial(_measure_objects, lab, out / "usual")
    yield Trial("", "Swift in two regions", "-"), usual
    for number, (options, link) in enumerate(TOKEN_CACHES):
        lab.start_proxies(options)
        lab.keystones.wan.change(link)
        objects = partial(_measure_objects, lab, out / str(number))
        seconds = link.round_trip_seconds
        asked = "near" if options.keystone == NEAR else format_duration(seconds)
        is_off = options.token_cache == NO_CACHE
        kept = "not at all" if is_off else f"{options.cached_seconds} s"
        strength = f"{kept}, {asked}"
        yield Trial("M1", "proxies keep tokens", strength), objects
    lab.keystones.wan.change(LINK)


def plant_stalls(lab: SwiftRegions, out: Path) -> Iterator[Planted]:
    """Yield a memcached of region 2 that stalls (M2)."""
    lab.start_proxies(SwiftOptions())
    router = lab.router(MEASURED_REGION)
    memcached = (site_folder(lab.folder, router.name), "memcached")
    for share in STALLED_SHARES:
        stall = partial(suspend, *memcached, STALL_PERIOD_SECONDS, share)
        objects = partial(_measure_objects, lab, out / str(share))
        strength = f"{share:.0%} of each second"
        with _beside(stall):
            yield Trial("M2", "the memcached of region 2 stalls", strength), objects


def _measure_objects(lab: SwiftRegions, out: Path) -> tuple[Named, Times]:
    calls = measure_objects(lab, Load(MEASURED_REGION, SECONDS), out).calls
    times = {parse_label(label)[0]: one.mean_seconds for label, one in calls.items()}
    return diagnose(lab.folder, lab.router(MEASURED_REGION), SECONDS), times


@click.command()
def main() -> None:
    """Try the rules, and write the page."""
    folder = state_folder() / "labs" / "rules-page"
    cluster, swift = GaleraWan(folder), SwiftRegions(folder)
    trials: list[Trial] = []
    gaps = Gaps()

    def note(name: str, found: Iterator[Planted]) -> None:
        with gaps.noting(name):
            for trial, find_out in found:
                with gaps.noting(trial.title):
                    named, times = find_out()
                    trials.append(replace(trial, named=named, times=times))
                    click.echo(trials[-1])

    with measuring(swift) as (out, cost):
        with gaps.noting("Galera"):
            cluster.up(LINK, ClusterOptions(), click.echo)
            cost.note_start()
            note("the rest of D9", plant_flow_control(cluster, out / "flow-control"))
            note("the rest of N1", plant_network(cluster, out / "network"))
        with gaps.noting("Swift"):
            swift.up(LINK, SETS["set3"], click.echo)
            note("the rest of M1", plant_token_cache(swift, out / "token-cache"))
            note("the rest of M2", plant_stalls(swift, out / "stalls"))
        write_page(PAGE, render(trials) + gaps.sentence(), cost)


if __name__ == "__main__":
    main()
