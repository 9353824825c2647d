"""Repeats the article on Swift's global cluster, with what it could not see.

    python -m keylag_dev.swift_regions_page

Needs root and some 25 minutes of an idle machine.
"""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Final

import click

from keylag.lab import intervals
from keylag.lab.link import format_duration, format_rate
from keylag.lab.swift.bench import CONTAINERS, METHODS, BenchLoad, Rates, run_bench
from keylag.lab.swift.lab import LINK, STORAGE_NODES, SwiftRegions
from keylag.lab.swift.measurement import (
    CLIENTS,
    LABELS,
    SUBJECTS,
    Calls,
    Load,
    Measured,
    measure,
)
from keylag.lab.swift.options import FAR, NEAR, NO_CACHE, OWN, SETS, SHARED
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.lab_page import Gaps, measuring, milliseconds, with_interval, write_page
from keylag_dev.site_fault import FLUSHED, FLUSHES, planted
from keylag_dev.site_picture import IMAGES, SitePicture

PAGE: Final = CHECKOUT / "docs" / "labs" / "swift-regions-results.md"
SECONDS: Final = 30
BASE: Final = "set1"
TOKENS_SET: Final = "set3"
"""The set in which tokens are measured."""
COLD: Final = "shared, cold"
TOKEN_CACHES: Final[Mapping[str, str]] = {
    "shared, warm": SHARED,
    COLD: SHARED,
    "of each process": OWN,
    "none": NO_CACHE,
}
"""States of auth_token's cache, and where it keeps tokens."""
PROCESSES: Final = 2
"""Of each proxy server, where tokens are measured."""
BENCH_CLIENTS: Final = (4, 16, 64)
REPETITIONS: Final = 3
ORDER: Final = random.Random(1)  # noqa: S311 - an order is no secret
OBJECTS_OF_CLIENT: Final[Mapping[str, int]] = {"set1": 160, "set2": 8, "set3": 12}
GETS_OF_CLIENT: Final[Mapping[str, int]] = {"set1": 250, "set2": 24, "set3": 250}
MOST_OBJECTS: Final = 640
MOST_GETS: Final = 1000
"""So that each run of swift-bench takes some half minute."""
FEWEST_OBJECTS: Final = min(
    *OBJECTS_OF_CLIENT.values(), MOST_OBJECTS // max(BENCH_CLIENTS)
)
"""Of a client."""
ARTICLE: Final[Mapping[str, Mapping[str, str]]] = {
    "set2": {"GET": "about half", "PUT": "20 to 30 %", "DELETE": "about half"},
    "set3": {"GET": "80 to 90 %", "PUT": "80 to 90 %", "DELETE": "about half"},
}
"""The rate of requests in Tokyo, as a share of that of set1."""
INTRODUCTION: Final = f"""\
# Swift in two regions

<!-- Made by `python -m keylag_dev.swift_regions_page`; run it again instead of
editing. -->

Two regions of {STORAGE_NODES} storage nodes each, three replicas, a link with
{format_duration(LINK.round_trip_seconds)} and {format_rate(LINK.rate_bits_per_second)}.

## The sets of the article

{CLIENTS} clients write, read and delete objects of 1 kB in turn, for {SECONDS} s at the
proxy server of each region, so no kind of call has a rate of its own. The times are
means at the client in ms, with an interval at 95 %.
"""
RATES: Final = f"""
## Rates by swift-bench

The article has rates by swift-bench, as shares of those of {BASE}, with its proxy
server in region 1; its number of clients is not known here. Here swift-bench runs at
region 1, {REPETITIONS} times with each number of clients, in random order within a set.
Its clients write objects of 1 kB to {CONTAINERS} containers, at least {FEWEST_OBJECTS}
objects each; then they read them, and then they delete them.

*/s* is the mean of the requests per second, with an interval at 95 % by Student's t.
*Share* is the geometric mean of the ratios to {BASE} with as many clients, with such an
interval, too. Before each kind of request swift-bench gets a new token, which the first
requests validate. Clients and servers share this machine.
"""
TOKENS: Final = f"""
## What the token takes

{TOKENS_SET}, and each proxy server has {PROCESSES} processes. In region 2, the Keystone
is near, or it is that of region 1. `auth_token` keeps validated tokens in the region's
memcached, which its processes share, in the memory of each process, or nowhere. *A
validation* is the median time of auth_token in a call that asked Keystone, *cached* in
all others; *share* is the part of auth_token in the time at the client.

With a warm shared cache, only the first call with each of the {SUBJECTS} tokens asks
Keystone. These calls prepare the load: *calls* and the shares leave them out. For a
cold cache, the region's memcached is emptied all the time (the fault {FLUSHED}, with
{FLUSHES}), and the shares are those of the calls that asked Keystone. Swift and a near
Keystone use the same memcached, so they find nothing in it, either.
"""

PICTURE: Final = SitePicture(
    board="services",
    file=IMAGES / "swift-services.png",
    heading="The dashboard meanwhile",
    reading="""\
*Services* at region 2 shows the ways to validate a token in the order of the table. Its
rates are of the last minute, so the last way is hardly seen.""",
)

SetRow = tuple[str, Measured]
BenchRow = tuple[str, int, Rates]
"""A set, a number of clients, and the rates of one run."""
TokenRow = tuple[str, str, Measured]
"""`near` or `far` Keystone, the state of the cache, and what was measured."""


def render(
    sets: Sequence[SetRow], rates: Sequence[BenchRow], tokens: Sequence[TokenRow]
) -> str:
    """Return the page."""
    return "\n".join(
        [*_set_lines(sets), *_rate_lines(rates), *_token_lines(tokens), ""]
    )


def _set_lines(sets: Sequence[SetRow]) -> Iterator[str]:
    yield INTRODUCTION
    yield "| set | region | call | mean, ms | failed |"
    yield "|---|---|---|---:|---:|"
    for name, found in sets:
        for label in LABELS:
            one = found.calls[label]
            cells = [
                name,
                str(found.region),
                _verb(label),
                milliseconds(one.mean_seconds),
                str(one.failed),
            ]
            yield f"| {' | '.join(cells)} |"


def _rate_lines(rates: Sequence[BenchRow]) -> Iterator[str]:
    yield RATES
    columns = (f"{clients} clients, /s | share" for clients in BENCH_CLIENTS)
    headings = ("set", "request", *columns, "share in the article", "failed")
    yield f"| {' | '.join(headings)} |"
    yield f"|---|---|{'---:|' * (2 * len(BENCH_CLIENTS) + 2)}"
    for name, method in product(SETS, METHODS.values()):
        cells = [name, method]
        for clients in BENCH_CLIENTS:
            found = _per_second(rates, name, clients, method)
            base = _per_second(rates, BASE, clients, method)
            cells += [with_interval(intervals.mean(found), 1), _share(found, base)]
        cells.append(ARTICLE.get(name, {}).get(method, "-"))
        failed = [one[method].failed for measured, _, one in rates if measured == name]
        yield f"| {' | '.join([*cells, str(sum(failed))])} |"


def _per_second(
    rates: Sequence[BenchRow], name: str, clients: int, method: str
) -> list[float]:
    return [
        one[method].per_second
        for measured, number, one in rates
        if (measured, number) == (name, clients)
    ]


def _share(rates: Sequence[float], base: Sequence[float]) -> str:
    """Return the mean of the ratios of two rates; their runs pair off as they come."""
    pairs = list(zip(rates, base, strict=False))
    return with_interval(intervals.ratio(pairs).scaled(100), 0, "%")


def _token_lines(tokens: Sequence[TokenRow]) -> Iterator[str]:
    yield TOKENS
    headings = (
        *("region", "Keystone", "token cache", "calls", "that asked Keystone"),
        *(
            "a validation, ms",
            "cached, ms",
            *(f"share of {_verb(one)}" for one in LABELS),
        ),
    )
    yield f"| {' | '.join(headings)} |"
    yield f"|---|---|---|{'---:|' * (len(headings) - 3)}"
    for keystone, cache, found in tokens:
        cells = [
            str(found.region),
            keystone,
            cache,
            str(sum(one.count for one in found.calls.values())),
            str(found.validations),
            _milliseconds(found.validation_seconds, 0),
            _milliseconds(found.cached_seconds, 1),
            *(f"{_token_share(found.calls[one], cache):.0%}" for one in LABELS),
        ]
        yield f"| {' | '.join(cells)} |"


def _token_share(calls: Calls, cache: str) -> float:
    return calls.validating_share if cache == COLD else calls.token_share


def _milliseconds(seconds: float, decimals: int) -> str:
    """Return a median in ms; `-` if it is 0, because there was no such call."""
    return f"{seconds * 1000:.{decimals}f}" if seconds else "-"


def _verb(label: str) -> str:
    return label.removesuffix(" object")


def bench_load(name: str, clients: int) -> BenchLoad:
    """Return what swift-bench sends to a set: as much as half a minute allows."""
    return BenchLoad(
        region=1,
        clients=clients,
        objects=min(OBJECTS_OF_CLIENT[name] * clients, MOST_OBJECTS),
        gets=min(GETS_OF_CLIENT[name] * clients, MOST_GETS),
    )


def measure_calls(
    lab: SwiftRegions, name: str, out: Path, gaps: Gaps
) -> Iterator[SetRow]:
    """Measure a set that runs at both regions; yield what could be measured."""
    for region in (1, 2):
        row = f"{name}, region {region}"
        with gaps.reporting(row):
            yield name, measure(lab, Load(region, SECONDS), out / f"{name}-{region}")


def measure_rates(
    lab: SwiftRegions, name: str, out: Path, gaps: Gaps
) -> Iterator[BenchRow]:
    """Run swift-bench on a set that runs, in random order; yield what it measured."""
    runs = list(product(BENCH_CLIENTS, range(1, REPETITIONS + 1)))
    for clients, number in ORDER.sample(runs, len(runs)):
        row = f"{name}, {clients} clients, run {number}"
        with gaps.noting(row):
            load = bench_load(name, clients)
            rates = run_bench(lab, load, out / f"{name}-{clients}-{number}")
            yield name, clients, rates
            click.echo(f"{row}: {_summary(rates)}")


def _summary(rates: Rates) -> str:
    return ", ".join(f"{one.per_second:.1f} {name}/s" for name, one in rates.items())


def measure_tokens(lab: SwiftRegions, out: Path, gaps: Gaps) -> Iterator[TokenRow]:
    """Measure all ways to validate a token; yield what could be measured."""
    site = lab.router(2)
    ways = product((NEAR, FAR), TOKEN_CACHES.items())
    for number, (keystone, (cache, place)) in enumerate(ways):
        with gaps.reporting(f"tokens, {keystone} Keystone, cache {cache}"):
            options = replace(
                SETS[TOKENS_SET],
                keystone=keystone,
                token_cache=place,
                proxy_processes=PROCESSES,
            )
            lab.start_proxies(options)
            emptied = planted(lab.folder, site, FLUSHED)
            with emptied if cache == COLD else nullcontext():
                found = measure(lab, Load(2, SECONDS), out / str(number))
            yield keystone, cache, found


@click.command()
def main() -> None:
    """Measure all sets and all ways to validate a token, and write the page."""
    lab = SwiftRegions(state_folder() / "labs" / "swift-regions-page")
    sets: list[SetRow] = []
    rates: list[BenchRow] = []
    tokens: list[TokenRow] = []
    gaps = Gaps()
    begun = time.time()
    with measuring(lab) as (out, cost):
        lab.up(LINK, SETS[BASE], click.echo)
        cost.note_start()
        for name, options in SETS.items():
            with gaps.noting(name):
                if name != BASE:
                    lab.start_swift(options, click.echo)
                sets += measure_calls(lab, name, out / "calls", gaps)
                rates += measure_rates(lab, name, out / "swift-bench", gaps)
                if name == TOKENS_SET:
                    begun = time.time()
                    tokens += measure_tokens(lab, out / "tokens", gaps)
        with gaps.noting("the picture of the dashboard"):
            PICTURE.take(lab.folder, lab.router(2), begun)
        page = render(sets, rates, tokens) + PICTURE.section(PAGE) + gaps.sentence()
        write_page(PAGE, page, cost)


if __name__ == "__main__":
    main()
