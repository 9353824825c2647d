"""Compares the SQL of token calls in Keystone's driver and in the database.

Keystone counts and times its statements, and every response has them in its
`Server-Timing`.  It also tags each statement with its route, so that the exporter of
the slow log counts those of token calls.  What a statement costs Keystone beyond the
database's own time is round trips and driver.
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

from keylag.breakdown import Run
from keylag.jtl import SETUP_PREFIX, Sample
from keylag.stack import Stack

ROUTE: Final = "/v3/auth/tokens"
LOGGED: Final = "keylag_slow_log_statement_duration_seconds"
BEHIND: Final = "keylag_slow_log_behind_bytes"
TIMEOUT_SECONDS: Final = 10
PAUSE_SECONDS: Final = 1.1
"""Longer than the exporter leaves the last statement of a log uncounted."""
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
    """Return what an exporter's text says of token calls, by method.

    The second value is how many bytes of the log it has not read yet; infinite if it
    does not say.
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
    """Return the statements of all token calls in the stack's slow log, by method.

    Waits until the exporter has read the whole log and two readings agree, at most
    half a minute.  Raises requests' errors.
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
    """Return both sides of the token calls of a run, by method.

    `before` and `after` are what was logged before and after the run.
    """
    sent: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        method, route, *_ = [*sample.label.removeprefix(SETUP_PREFIX).split(" "), ""]
        if route == ROUTE and sample.timing:
            sent[method].append(sample)
    return {
        method: _sides(group, before.get(method, Logged()), after.get(method, Logged()))
        for method, group in sorted(sent.items())
    }


def _sides(samples: Sequence[Sample], before: Logged, after: Logged) -> SqlTotals:
    timings = [sample.timing for sample in samples if sample.timing]
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
    """Print both sides of every run's statements, a statement's mean in ms."""
    table = Table(
        title=f"SQL of {ROUTE} from both sides: a statement's mean, ms",
        title_justify="left",
    )
    table.add_column("call")
    table.add_column("run")
    for name in ("statements", "logged", "Keystone", "database", "between"):
        table.add_column(name, justify="right")
    for run in runs:
        for method, totals in run["sql_sides"].items():
            table.add_row(method, run["name"], *_table_row(SqlTotals(**totals)))
    console.print(table)


def _table_row(sides: SqlTotals) -> list[str]:
    client = 1e3 * sides.client_seconds / (sides.statements or 1)
    server = 1e3 * sides.server_seconds / (sides.logged or 1)
    return [
        f"{sides.statements:.0f}",
        f"{sides.logged:.0f}",
        *(f"{value:.3f}" for value in (client, server, client - server)),
    ]
