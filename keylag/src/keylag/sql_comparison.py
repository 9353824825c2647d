"""Compares SQL time in Keystone's driver with SQL time in the database.

Keystone tags its statements with their route, and the slow log has the tag.
Prometheus has the totals of both.  The difference is network and driver time.
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
"""Label with the run of a Keystone; absent outside runs."""

_KEYSTONE: Final = f'http_route="{ROUTE}", {RUN_LABEL}="%(run)s"'
_SLOW_LOG: Final = f"""sum by (http_request_method) (label_replace(
    keylag_slow_log_statement_duration_seconds_%s{{route=~".* {ROUTE}"}},
    "http_request_method", "$1", "route", "(.*) .*"))"""
QUERIES: Final = {
    "statements": f"""sum by (http_request_method) (
        keystone_request_sql_statements_total{{{_KEYSTONE}}})""",
    "client_seconds": f"""sum by (http_request_method) (
        keystone_request_phase_time_seconds_total{{
            {_KEYSTONE}, keystone_phase="sql"}})""",
    "logged": _SLOW_LOG % "count",
    "server_seconds": _SLOW_LOG % "sum",
}
"""The query for each field of `SqlTotals`; results are by HTTP method."""
LAST_COMPLETE_SCRAPE: Final = """min(timestamp(up{job=~"otlp|keylag-exporter"})
    and on (job) (up == 1) and on () (sum(keylag_slow_log_behind_bytes) == 0))"""
"""Query for the time of the last scrape of both after the log was read to its end."""

TIMEOUT_SECONDS: Final = 10
LAG_SECONDS: Final = 2.0
"""Longer than an export interval, and than the delay of the slow log reader."""
PAUSE_SECONDS: Final = 1.1
"""Longer than the scrape interval."""
MAX_PAUSES: Final = 30


@dataclass(frozen=True)
class SqlTotals:
    """Totals over the token calls of one HTTP method; times in seconds."""

    statements: float = 0.0
    """Statements that Keystone counted."""
    logged: float = 0.0
    """Statements in the slow log."""
    client_seconds: float = 0.0
    server_seconds: float = 0.0

    def __sub__(self, before: "SqlTotals") -> "SqlTotals":
        """Return the increase since `before`."""
        earlier = asdict(before)
        return SqlTotals(**{k: v - earlier[k] for k, v in asdict(self).items()})


TotalsByMethod = Mapping[str, SqlTotals]


def query_prometheus(stack: Stack, query: str) -> dict[str, float]:
    """Return the values of a query by HTTP method; raises RequestException."""
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


def read_totals(stack: Stack, run: str = "") -> TotalsByMethod:
    """Return the current totals by HTTP method; those of Keystone are of this run.

    Raises RequestException.
    """
    found = {
        field: query_prometheus(stack, query.replace("%(run)s", run))
        for field, query in QUERIES.items()
    }
    methods = {method for values in found.values() for method in values}
    return {
        method: SqlTotals(**{f: values.get(method, 0.0) for f, values in found.items()})
        for method in sorted(methods)
    }


def wait_for_totals(
    stack: Stack,
    run: str = "",
    quiet_since: float | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> TotalsByMethod:
    """Wait until Prometheus has all events until `quiet_since`; return the totals.

    `quiet_since` is a Unix time and defaults to now.  The totals are complete once
    both sides were scraped LAG_SECONDS later and two readings agree.  After
    MAX_PAUSES readings the last totals are returned.  Raises RequestException.
    """
    due = (quiet_since or time.time()) + LAG_SECONDS
    before, now = None, read_totals(stack, run)
    for _ in range(MAX_PAUSES):
        if (
            before == now
            and query_prometheus(stack, LAST_COMPLETE_SCRAPE).get("", 0.0) >= due
        ):
            break
        wait(PAUSE_SECONDS)
        before, now = now, read_totals(stack, run)
    return now


def subtract_totals(now: TotalsByMethod, before: TotalsByMethod) -> TotalsByMethod:
    """Return the increase by HTTP method, for methods that sent statements."""
    increase = {m: totals - before.get(m, SqlTotals()) for m, totals in now.items()}
    return {m: totals for m, totals in increase.items() if totals.statements}


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
    client = 1e3 * totals.client_seconds / totals.statements
    server = 1e3 * totals.server_seconds / (totals.logged or 1)
    return [
        f"{totals.statements:.0f}",
        f"{totals.logged:.0f}",
        *(f"{value:.3f}" for value in (client, server, client - server)),
    ]
