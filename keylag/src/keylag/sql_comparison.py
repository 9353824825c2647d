"""Compares SQL time in Keystone's driver with SQL time in the database.

The `Server-Timing` of each response has Keystone's statements and their time.
Keystone tags its statements with their route, so the exporter of the slow log counts
those of token calls.  The difference is network and driver time.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import requests
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from keylag.breakdown import Run, parse_label
from keylag.jtl import SETUP_PREFIX, Sample
from keylag.server_timing import ServerTiming
from keylag.stack import Stack

ROUTE: Final = "/v3/auth/tokens"
LOGGED: Final = "keylag_slow_log_statement_duration_seconds"
BEHIND: Final = "keylag_slow_log_behind_bytes"
TIMEOUT_SECONDS: Final = 10
PAUSE_SECONDS: Final = 1.1
"""Longer than the delay of the slow log reader."""
MAX_PAUSES: Final = 30


@dataclass(frozen=True)
class Logged:
    """Statements of one method's token calls in the slow log."""

    count: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class SqlTotals:
    """Totals over the token calls of one HTTP method; times in seconds."""

    statements: float = 0.0
    """Statements that Keystone counted."""
    logged: float = 0.0
    """Statements in the slow log."""
    client_seconds: float = 0.0
    server_seconds: float = 0.0


def parse_exposition(exposition: str) -> tuple[dict[str, Logged], float]:
    """Return the logged statements of token calls by method, and the unread bytes.

    The bytes are infinite if the exporter does not read a slow log.
    """
    totals: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    behind = math.inf
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            method, _, route = sample.labels.get("route", "").partition(" ")
            if sample.name == BEHIND:
                behind = sample.value
            elif sample.name.startswith(LOGGED) and route == ROUTE:
                totals[method][sample.name] += sample.value
    return {
        method: Logged(sums[f"{LOGGED}_count"], sums[f"{LOGGED}_sum"])
        for method, sums in totals.items()
    }, behind


def wait_for_logged(
    stack: Stack, wait: Callable[[float], None] = time.sleep
) -> dict[str, Logged]:
    """Return the logged statements of all token calls of a stack, by method.

    Waits until the exporter has read the whole log and two scrapes agree; after half a
    minute, returns the latest scrape.  Raises requests' errors.
    """
    url = f"{stack.url('exporters')}/metrics"
    before = None
    for _ in range(MAX_PAUSES):
        response = requests.get(url, timeout=TIMEOUT_SECONDS)
        response.raise_for_status()
        now, behind = parse_exposition(response.text)
        if now == before and not behind:
            break
        before = now
        wait(PAUSE_SECONDS)
    return now


def compare_sides(
    samples: Iterable[Sample], before: Mapping[str, Logged], after: Mapping[str, Logged]
) -> dict[str, SqlTotals]:
    """Return the totals of the token calls of a run, by method.

    `before` and `after` are the logged statements before and after the run.
    """
    timings: dict[str, list[ServerTiming]] = defaultdict(list)
    for sample in samples:
        method, route, _ = parse_label(sample.label.removeprefix(SETUP_PREFIX))
        if route == ROUTE and sample.timing:
            timings[method].append(sample.timing)
    return {
        method: _totals(
            group, before.get(method, Logged()), after.get(method, Logged())
        )
        for method, group in sorted(timings.items())
    }


def _totals(
    timings: Sequence[ServerTiming], before: Logged, after: Logged
) -> SqlTotals:
    return SqlTotals(
        statements=sum(timing.counts.get("sql_statements", 0) for timing in timings),
        logged=after.count - before.count,
        client_seconds=math.fsum(
            seconds
            for timing in timings
            for (phase, _), seconds in timing.cells.items()
            if phase == "sql"
        ),
        server_seconds=after.seconds - before.seconds,
    )


def render_table(runs: Sequence[Run], console: Console) -> None:
    """Print the mean time of a statement in ms, for every run and method."""
    table = Table(
        title=f"SQL of {ROUTE}, in Keystone and in the database: mean statement, ms",
        title_justify="left",
    )
    table.add_column("call")
    table.add_column("run")
    for name in ("statements", "logged", "Keystone", "database", "difference"):
        table.add_column(name, justify="right")
    for run in runs:
        for method, totals in run["sql_sides"].items():
            table.add_row(method, run["name"], *_table_row(SqlTotals(**totals)))
    console.print(table)


def _table_row(totals: SqlTotals) -> list[str]:
    client = 1e3 * totals.client_seconds / (totals.statements or 1)
    server = 1e3 * totals.server_seconds / (totals.logged or 1)
    return [
        f"{totals.statements:.0f}",
        f"{totals.logged:.0f}",
        *(f"{value:.3f}" for value in (client, server, client - server)),
    ]
