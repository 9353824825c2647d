"""Repeats the article on Swift's global cluster, with what it could not see.

    python -m keylag_dev.swift_regions_page

Needs root and some 15 minutes of an idle machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

import click

from keylag.lab.link import format_duration, format_rate
from keylag.lab.swift.lab import LINK, STORAGE_NODES, SwiftRegions
from keylag.lab.swift.measurement import (
    CLIENTS,
    LABELS,
    Load,
    Measured,
    measure,
)
from keylag.lab.swift.options import FAR, NEAR, NOT_CACHED, SETS, SwiftOptions
from keylag.paths import CHECKOUT
from keylag.state import state_folder
from keylag_dev.lab_page import measuring, milliseconds, write_page

PAGE: Final = CHECKOUT / "docs" / "labs" / "swift-regions-results.md"
SECONDS: Final = 30
BASE: Final = "set1"
CACHED_SECONDS: Final = (SwiftOptions().cached_seconds, NOT_CACHED)
ARTICLE: Final[Mapping[str, Mapping[str, str]]] = {
    "set2": {
        "GET object": "about half",
        "PUT object": "20 to 30 %",
        "DELETE object": "about half",
    },
    "set3": {
        "GET object": "80 to 90 %",
        "PUT object": "80 to 90 %",
        "DELETE object": "about half",
    },
}
"""The rate of requests in Tokyo, as a share of that of set1."""
INTRODUCTION: Final = f"""\
# Swift in two regions

<!-- Made by `python -m keylag_dev.swift_regions_page`; run it again instead of
editing. -->

Two regions of {STORAGE_NODES} storage nodes each, three replicas, a link with
{format_duration(LINK.round_trip_seconds)} and {format_rate(LINK.rate_bits_per_second)}.
{CLIENTS} clients write, read and delete objects of 1 kB, for {SECONDS} s at the proxy
server of each region.

## The sets of the article

The times are means at the client in ms, with an interval at 95 %. *Rate in the article*
is that of its requests as a share of set1, with its proxy server in region 1. Our
clients send all kinds of calls in turn, so no kind has a rate of its own.
"""
TOKENS: Final = """
## What the token takes

set3. In region 2, the Keystone is near, or it is that of region 1. `auth_token` keeps
validated tokens in the region's memcached, or not. *A validation* is the median time of
auth_token in a call that asked Keystone, *cached* in all others; *share* is its part of
the time at the client. With the cache, only the first call with each token asks, which
prepares the load and is not part of the shares.
"""

SetRow = tuple[str, Measured]
TokenRow = tuple[SwiftOptions, Measured]


def render(sets: Sequence[SetRow], tokens: Sequence[TokenRow]) -> str:
    """Return the page."""
    return "\n".join([*_set_lines(sets), *_token_lines(tokens), ""])


def _set_lines(sets: Sequence[SetRow]) -> Iterator[str]:
    yield INTRODUCTION
    headings = ("set", "region", "call", "mean, ms", "rate in the article", "failed")
    yield f"| {' | '.join(headings)} |"
    yield "|---|---|---|---:|---:|---:|"
    for name, found in sets:
        for label in LABELS:
            one = found.calls[label]
            in_article = ARTICLE.get(name, {}).get(label, "-")
            cells = [
                name,
                str(found.region),
                _verb(label),
                milliseconds(one.mean_seconds),
                in_article if found.region == 1 else "-",
                str(one.failed),
            ]
            yield f"| {' | '.join(cells)} |"


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
    for options, found in tokens:
        cells = [
            str(found.region),
            options.keystone,
            "none" if options.cached_seconds == NOT_CACHED else "memcached",
            str(sum(one.count for one in found.calls.values())),
            str(found.validations),
            _milliseconds(found.validation_seconds, 0),
            _milliseconds(found.cached_seconds, 1),
            *(f"{found.calls[one].token_share:.0%}" for one in LABELS),
        ]
        yield f"| {' | '.join(cells)} |"


def _milliseconds(seconds: float, decimals: int) -> str:
    """Return a median in ms; `-` if it is 0, because there was no such call."""
    return f"{seconds * 1000:.{decimals}f}" if seconds else "-"


def _verb(label: str) -> str:
    return label.removesuffix(" object")


@click.command()
def main() -> None:
    """Measure all sets and all ways to validate a token, and write the page."""
    lab = SwiftRegions(state_folder() / "labs" / "swift-regions-page")
    sets: list[SetRow] = []
    tokens: list[TokenRow] = []
    with measuring(lab) as (out, cost):
        folders = (out / str(number) for number in range(1000))
        lab.up(LINK, SETS[BASE], click.echo)
        cost.note_start()
        for name, options in SETS.items():
            if name != BASE:
                lab.start_swift(options, click.echo)
            for region in (1, 2):
                found = measure(lab, Load(region, SECONDS), next(folders))
                sets.append((name, found))
                click.echo(f"{name}, region {region}: measured")
        for keystone, seconds in product((NEAR, FAR), CACHED_SECONDS):
            options = replace(lab.options(), keystone=keystone, cached_seconds=seconds)
            lab.start_proxies(options)
            found = measure(lab, Load(2, SECONDS), next(folders))
            tokens.append((options, found))
            click.echo(f"{keystone}, cached for {seconds} s: measured")
        write_page(PAGE, render(sets, tokens), cost)


if __name__ == "__main__":
    main()
