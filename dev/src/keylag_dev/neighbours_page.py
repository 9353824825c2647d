"""Measures Keystone beside one, two and three databases, and what each lever changes.

    python -m keylag_dev.neighbours_page

Needs root and an idle machine: some 20 minutes for the numbers of tenants, and five for
each round of the levers.
"""

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

import click

from keylag.experiment.interval import Interval
from keylag.lab import intervals
from keylag.lab.load import KEYLAG, LabLoad
from keylag.lab.neighbours.lab import TENANTS, Neighbours
from keylag.lab.neighbours.levers import LEVERS
from keylag.lab.neighbours.measurement import CLIENTS, Measured, measure
from keylag.lab.neighbours.options import UNLIMITED, NeighbourOptions
from keylag.lab.neighbours.ycsb import THREADS
from keylag.paths import CHECKOUT
from keylag.phases import CATEGORY_NAMES
from keylag.services.base import StackOptions
from keylag.state import state_folder
from keylag_dev.lab_page import (
    Gaps,
    measuring,
    milliseconds,
    pairs,
    with_interval,
    write_page,
)

PAGE: Final = CHECKOUT / "docs" / "labs" / "neighbours-results.md"
SECONDS: Final = 30
WARM_UP_SECONDS: Final = 45
"""After a change of the tenants, whose programs are in Java."""
LEVER_SECONDS: Final = 12
LONGEST_SECONDS: Final = 120
"""Of the log-ins of all users."""
SETTLE_SECONDS: Final = 3
"""After a change of the levers."""
ROUNDS: Final = 5
NONE: Final = "none"
ORDER: Final = random.Random(1)  # noqa: S311 - an order is no secret
LEVER_OPTIONS: Final = NeighbourOptions(len(TENANTS))
RATES: Final = (NeighbourOptions.rate_per_second, UNLIMITED)
LOADS: Final = (
    NeighbourOptions(0),
    *(NeighbourOptions(number, rate) for rate in RATES for number in TENANTS),
)
LOG_INS: Final = LabLoad(
    "token-issue", LONGEST_SECONDS, CLIENTS, {"loops": StackOptions.users // CLIENTS}
)
"""One of each user."""
LOG_IN: Final = "POST /v3/auth/tokens password"
VALIDATION: Final = "GET /v3/auth/tokens"
REVOCATION: Final = "DELETE /v3/auth/tokens"
CALLS: Final[Mapping[str, str]] = {
    "a log-in": LOG_IN,
    "a validation": VALIDATION,
    "a revocation": REVOCATION,
}
INTRODUCTION: Final = f"""\
# Keystone and its neighbours

<!-- Made by `python -m keylag_dev.neighbours_page`; run it again instead of editing.
-->

{CLIENTS} clients send token calls to Keystone for {SECONDS} s. Each neighbour is a
Cassandra with {NeighbourOptions.records} rows of 1 kB and a YCSB with {THREADS}
threads, half of whose operations read a row and half update one.

## By the number of neighbours

Times are at the client in ms, with an interval at 95 %, which a few calls do not have.
Each row was measured once, the rows in random order. Before each, without neighbours,
all users logged in: a load that is not measured, and fills the cache.
"""
CATEGORIES: Final = """
## Where the time goes in Keystone

The 50th and the 95th percentile of the time of each category in a call, in ms.
"""
MACHINE: Final = """
## The neighbours and the machine

Times are in ms: the 95th percentiles of all neighbours together are means of theirs,
those of the disk are means. *Queue* is the mean number of requests that wait or are
served; pressure is PSI `some`, as a share of the time; steal is CPU time that the
hypervisor gave to others.
"""
EXPERIMENT: Final = f"""
## The levers

With {LEVER_OPTIONS.tenants} neighbours at {LEVER_OPTIONS.rate_per_second} operations/s
each. In each of {ROUNDS} rounds, every lever was on for {LEVER_SECONDS} s, in random
order, and once none was. A figure is the ratio to *none* in the same round: the
geometric mean of all rounds, with an interval at 95 % by Student's t; in parentheses,
the calls with the lever and with none. An interval without 1 is a difference; where
nothing differs, one in twenty is without 1 by chance.
"""


class Figure(NamedTuple):
    """A figure that a lever may change."""

    value: Callable[[Measured], float]
    label: str = ""
    """Of the calls whose figure it is, if it is one of calls."""


def _quantile(label: str, name: str) -> Figure:
    def value(found: Measured) -> float:
        one = found.calls.get(label)
        interval: Interval | None = getattr(one, name, None)
        return interval.mid if interval else math.nan

    return Figure(value, label)


def _operations(found: Measured) -> float:
    return sum(one.operations_per_second for one in found.tenants)


def _p95(operation: str) -> Callable[[Measured], float]:
    def value(found: Measured) -> float:
        values = [one.p95_seconds[operation] for one in found.tenants]
        return fmean(values) if values else math.nan

    return value


LEVER_FIGURES: Final[Mapping[str, Figure]] = {
    "log-in, p50": _quantile(LOG_IN, "p50_seconds"),
    "log-in, p95": _quantile(LOG_IN, "p95_seconds"),
    "validation, p50": _quantile(VALIDATION, "p50_seconds"),
    "validation, p95": _quantile(VALIDATION, "p95_seconds"),
    "revocation, p50": _quantile(REVOCATION, "p50_seconds"),
    "neighbours, operations/s": Figure(_operations),
    "neighbours, read, p95": Figure(_p95("READ")),
    "neighbours, update, p95": Figure(_p95("UPDATE")),
    "a write to the disk": Figure(lambda found: found.host.write_seconds),
    "a disk cache flush": Figure(lambda found: found.host.flush_seconds),
}

Turn = Mapping[str, Measured]
"""What was measured in a round, by lever and NONE; without what failed."""


def render(by_number: Sequence[Measured], rounds: Sequence[Turn]) -> str:
    """Return the page."""
    lines = (
        *_call_lines(by_number),
        *_category_lines(by_number),
        *_machine_lines(by_number),
        *_lever_lines(rounds),
    )
    return "\n".join([*lines, ""])


def _load(options: NeighbourOptions) -> tuple[str, str]:
    rate = str(options.rate_per_second or "unlimited") if options.tenants else "-"
    return str(options.tenants), rate


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _head(texts: Sequence[str], numbers: Sequence[str]) -> Iterator[str]:
    yield _row(*texts, *numbers)
    yield f"|{'---|' * len(texts)}{'---:|' * len(numbers)}"


def _call_lines(by_number: Sequence[Measured]) -> Iterator[str]:
    yield INTRODUCTION
    texts = ("neighbours", "operations/s of each", "call")
    yield from _head(texts, ("calls", "failed", "p50", "p95"))
    for found in by_number:
        for name, label in CALLS.items():
            if one := found.calls.get(label):
                quantiles = map(milliseconds, (one.p50_seconds, one.p95_seconds))
                counts = (str(one.count), str(one.failed))
                yield _row(*_load(found.options), name, *counts, *quantiles)


def _category_lines(by_number: Sequence[Measured]) -> Iterator[str]:
    yield CATEGORIES
    texts = ("neighbours", "operations/s of each", "call", "")
    yield from _head(texts, tuple(CATEGORY_NAMES.values()))
    for found in by_number:
        for name, label in CALLS.items():
            if not (one := found.calls.get(label)):
                continue
            for quantile in ("p50", "p95"):
                values = (
                    one.categories.get(category, {}).get(quantile, 0.0)
                    for category in CATEGORY_NAMES
                )
                cells = (f"{value * 1000:.1f}" for value in values)
                yield _row(*_load(found.options), name, quantile, *cells)


def _machine_lines(by_number: Sequence[Measured]) -> Iterator[str]:
    yield MACHINE
    numbers = (
        *("operations/s of all", "read, p95", "update, p95", "disk used", "queue"),
        *("a disk read", "a disk write", "a disk cache flush", "pressure of I/O"),
        *("pressure of CPU", "pressure of memory", "iowait", "steal"),
    )
    yield from _head(("neighbours", "operations/s of each"), numbers)
    for found in by_number:
        host = found.host
        cells = (
            f"{_operations(found):.0f}",
            *(_or_none(_p95(name)(found) * 1000) for name in ("READ", "UPDATE")),
            *(f"{host.disk_utilisation:.0%}", f"{host.disk_queue:.2f}"),
            *(
                f"{seconds * 1000:.2f}"
                for seconds in (
                    host.read_seconds,
                    host.write_seconds,
                    host.flush_seconds,
                )
            ),
            *(f"{host.pressure[f'{kind}_waiting']:.1%}" for kind in _PRESSURES),
            *(f"{host.cpu.get(mode, 0.0):.1%}" for mode in ("iowait", "steal")),
        )
        yield _row(*_load(found.options), *cells)


_PRESSURES: Final = ("io", "cpu", "memory")


def _or_none(ms: float) -> str:
    return "-" if math.isnan(ms) else f"{ms:.1f}"


def _lever_lines(rounds: Sequence[Turn]) -> Iterator[str]:
    yield EXPERIMENT
    yield from _head(("lever",), tuple(LEVER_FIGURES))
    for lever in LEVERS:
        ratios = (
            _ratio(pairs(rounds, lever, NONE), figure)
            for figure in LEVER_FIGURES.values()
        )
        yield _row(f"`{lever}`", *ratios)


def _ratio(pairs: Sequence[tuple[Measured, Measured]], figure: Figure) -> str:
    values = [(figure.value(one), figure.value(base)) for one, base in pairs]
    found = intervals.ratio([one for one in values if all(part > 0 for part in one)])
    if math.isnan(found.mid):
        return "-"
    return with_interval(found, 2) + _counts(pairs, figure.label)


def _counts(pairs: Sequence[tuple[Measured, Measured]], label: str) -> str:
    if not label:
        return ""
    sides = zip(*pairs, strict=True)
    lever, none = (sum(_count(one, label) for one in side) for side in sides)
    return f" ({lever}, {none})"


def _count(found: Measured, label: str) -> int:
    return found.calls[label].count if label in found.calls else 0


def _measure_numbers(
    lab: Neighbours, folders: Iterator[Path], gaps: Gaps
) -> list[Measured]:
    found = {}
    for options in ORDER.sample(LOADS, len(LOADS)):
        number, rate = _load(options)
        with gaps.reporting(f"{number} neighbours, operations/s of each: {rate}"):
            _start_warm(lab, options, next(folders))
            found[options] = measure(lab, SECONDS, next(folders))
    return [found[options] for options in LOADS if options in found]


def _start_warm(lab: Neighbours, options: NeighbourOptions, out: Path) -> None:
    lab.set_neighbours(NeighbourOptions(0), click.echo)
    LOG_INS.send([KEYLAG], out, [f"--state={lab.stack}"])
    lab.set_neighbours(options, click.echo)
    time.sleep(WARM_UP_SECONDS)


def _measure_levers(
    lab: Neighbours, folders: Iterator[Path], gaps: Gaps
) -> Iterator[Turn]:
    _start_warm(lab, LEVER_OPTIONS, next(folders))
    for number in range(1, ROUNDS + 1):
        names = [NONE, *LEVERS]
        turn = {}
        for name in ORDER.sample(names, len(names)):
            with gaps.noting(f"round {number}, {name}"):
                lab.switches().switch_to([] if name == NONE else [name])
                time.sleep(SETTLE_SECONDS)
                turn[name] = measure(lab, LEVER_SECONDS, next(folders))
        yield turn
        click.echo(f"Round {number} of {ROUNDS}: measured")


@click.command()
def main() -> None:
    """Measure all numbers of tenants and all levers, and write the page."""
    lab = Neighbours(state_folder() / "labs" / "neighbours-page")
    rounds: list[Turn] = []
    gaps = Gaps()
    with measuring(lab) as (out, cost):
        folders = (out / str(number) for number in range(1000))
        lab.up(NeighbourOptions(len(TENANTS)), click.echo)
        cost.note_start()
        by_number = _measure_numbers(lab, folders, gaps)
        with gaps.noting("the rest of the levers"):
            rounds += _measure_levers(lab, folders, gaps)
        write_page(PAGE, render(by_number, rounds) + gaps.sentence(), cost)


if __name__ == "__main__":
    main()
