"""SQL seen from both sides: in Keystone's driver, and inside the database.

Keystone tags its statements with their route, the slow log has the tag, and
Prometheus has what both counted.  What a statement costs Keystone beyond the
database's own time is round trips and driver.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import requests
from rich.console import Console
from rich.table import Table

from keylag.breakdown import Run
from keylag.stack import Stack

ROUTE: Final = "/v3/auth/tokens"
RUN_LABEL: Final = "keylag_run"
"""Says which run a Keystone was started for; absent outside runs."""

_KEYSTONE: Final = f'http_route="{ROUTE}", {RUN_LABEL}="%(run)s"'
_LOG: Final = f"""sum by (http_request_method) (label_replace(
    keylag_slow_log_statement_duration_seconds_%s{{route=~".* {ROUTE}"}},
    "http_request_method", "$1", "route", "(.*) .*"))"""
QUERIES: Final = {
    "statements": f"""sum by (http_request_method) (
        keystone_request_sql_statements_total{{{_KEYSTONE}}})""",
    "client_seconds": f"""sum by (http_request_method) (
        keystone_request_phase_time_seconds_total{{
            {_KEYSTONE}, keystone_phase="sql"}})""",
    "logged": _LOG % "count",
    "server_seconds": _LOG % "sum",
}
"""Field of `Sides` to the query that gives it by method."""
LOOKED: Final = """min(timestamp(up{job=~"otlp|keylag-exporter"})
    and on (job) (up == 1) and on () (sum(keylag_slow_log_behind_bytes) == 0))"""
"""When both sides were last scraped with the log read to its end; seconds."""

TIMEOUT_SECONDS: Final = 10
LAG_SECONDS: Final = 2.0
"""Longer than an export, and than the last statement of a log stays uncounted."""
PAUSE_SECONDS: Final = 1.1
"""Longer than Prometheus waits between two scrapes."""
MOST_PAUSES: Final = 30


@dataclass(frozen=True)
class Sides:
    """Totals of one method's token calls; times in seconds."""

    statements: float = 0.0
    """As Keystone counted them."""
    logged: float = 0.0
    """As the database logged them."""
    client_seconds: float = 0.0
    server_seconds: float = 0.0

    def __sub__(self, before: "Sides") -> "Sides":
        """Return what was added since."""
        earlier = asdict(before)
        return Sides(**{k: v - earlier[k] for k, v in asdict(self).items()})


BySide = Mapping[str, Sides]


def ask(stack: Stack, query: str) -> dict[str, float]:
    """Return a query's values by method; raises requests' own errors."""
    answer = requests.get(
        f"{stack.url('prometheus')}/api/v1/query",
        params={"query": query},
        timeout=TIMEOUT_SECONDS,
    )
    answer.raise_for_status()
    return {
        series["metric"].get("http_request_method", ""): float(series["value"][1])
        for series in answer.json()["data"]["result"]
    }


def read(stack: Stack, run: str = "") -> BySide:
    """Return the totals by method as they are now, Keystone's for this run alone."""
    found = {
        field: ask(stack, query.replace("%(run)s", run))
        for field, query in QUERIES.items()
    }
    methods = {method for values in found.values() for method in values}
    return {
        method: Sides(**{f: values.get(method, 0.0) for f, values in found.items()})
        for method in sorted(methods)
    }


def settled(
    stack: Stack,
    run: str = "",
    quiet_since: float | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> BySide:
    """Return the totals once all that happened until `quiet_since` is read.

    That is a time of the clock, by default now.  Prometheus has to have looked at
    both sides some seconds later, and two looks in a row have to agree; after half
    a minute the totals are returned as they are.
    """
    due = (quiet_since or time.time()) + LAG_SECONDS
    before, now = None, read(stack, run)
    for _ in range(MOST_PAUSES):
        if before == now and ask(stack, LOOKED).get("", 0.0) >= due:
            break
        wait(PAUSE_SECONDS)
        before, now = now, read(stack, run)
    return now


def since(now: BySide, before: BySide) -> BySide:
    """Return what was added, by method."""
    added = {m: sides - before.get(m, Sides()) for m, sides in now.items()}
    return {method: sides for method, sides in added.items() if sides.statements}


def render(runs: Sequence[Run], console: Console) -> None:
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
            table.add_row(method, run["name"], *_row(Sides(**totals)))
    console.print(table)


def _row(sides: Sides) -> list[str]:
    client = 1e3 * sides.client_seconds / sides.statements
    server = 1e3 * sides.server_seconds / (sides.logged or 1)
    return [
        f"{sides.statements:.0f}",
        f"{sides.logged:.0f}",
        *(f"{value:.3f}" for value in (client, server, client - server)),
    ]
