"""Sends token calls of all kinds, and counts them in three sources."""

import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import requests
from rich.console import Console

from keylag.jtl import Sample, read_samples
from keylag.load_plans import find_plan
from keylag.load_runner import send_load
from keylag.load_target import from_stack
from keylag.sample_cloud import connect
from keylag.sql_comparison import SqlTotals
from keylag.stack import Stack

PLANS = {
    "token-issue": {},
    "token-validate": {},
    "token-mixed": {
        "issue_percent": "40",
        "validate_percent": "30",
        "revoke_percent": "30",
    },
}
SHORT = {"threads": "4", "loops": "5", "ramp_seconds": "0"}
TOKENS = '{http_route="/v3/auth/tokens"}'
REQUESTS = f"http_server_request_duration_seconds_count{TOKENS}"
LOGGED = """sum by (http_request_method) (label_replace(
    keylag_slow_log_statement_duration_seconds_%s{route=~".* /v3/auth/tokens"},
    "http_request_method", "$1", "route", "(.*) .*"))"""
SIDES = {
    "statements": f"""sum by (http_request_method) (
        keystone_request_sql_statements_total{TOKENS})""",
    "client_seconds": """sum by (http_request_method) (
        keystone_request_phase_time_seconds_total{
            http_route="/v3/auth/tokens", keystone_phase="sql"})""",
    "logged": LOGGED % "count",
    "server_seconds": LOGGED % "sum",
}
"""Field of `SqlTotals` to the query that gives it by method."""
SCRAPED = """min(timestamp(up{job=~"otlp|keylag-exporter"})
    and on (job) (up == 1) and on () (sum(keylag_slow_log_behind_bytes) == 0))"""
"""When both sides were last scraped with the log read to its end; seconds."""
LAG_SECONDS = 5.0
"""Longer than an export, also on a busy machine, and than the last statement of a log
stays uncounted."""


@dataclass(frozen=True)
class SentCalls:
    """Token calls by method, as JMeter, Prometheus and the database counted them."""

    jmeter: Counter[str]
    prometheus: Counter[str]
    sql: dict[str, SqlTotals]


def query_prometheus(stack: Stack, query: str) -> dict[tuple[str, ...], float]:
    """Return the values of a query by their label values."""
    url = f"{stack.url('prometheus')}/api/v1/query"
    answer = requests.get(url, params={"query": query}, timeout=10).json()
    return {
        tuple(series["metric"].values()): float(series["value"][1])
        for series in answer["data"]["result"]
    }


def requests_by_method(stack: Stack) -> Counter[str]:
    """Return the number of token calls in Prometheus by method."""
    query = f"sum by (http_request_method) ({REQUESTS})"
    return Counter(
        {key[0]: round(n) for key, n in query_prometheus(stack, query).items()}
    )


def _send(stack: Stack, name: str, chosen: dict[str, str], out: Path) -> list[Sample]:
    """Send the load of a plan, and assert that all requests succeed."""
    result = send_load(
        find_plan(name), from_stack(stack), chosen, out / name, Console(quiet=True)
    )
    samples, warnings = read_samples(result.samples)
    assert warnings == []
    assert all(sample.success for sample in samples)
    return samples


WAKING_CALLS = 2


def wake_service(stack: Stack) -> None:
    """Call the service as administrator, so that all its counters exist.

    The first call has an uncached token, the second one a cached token.
    """
    token = connect(stack.admin()).session.get_token()
    headers = {"X-Auth-Token": str(token)}
    for _ in range(WAKING_CALLS):
        answer = requests.get(stack.url("service"), headers=headers, timeout=60)
        assert answer.status_code == requests.codes.ok


def call_service(stack: Stack, out: Path) -> list[Sample]:
    """Send calls of the service with the tokens of a few users."""
    samples = _send(stack, "service-call", {**SHORT, "subjects": "3"}, out)
    return [sample for sample in samples if not sample.is_setup]


def sql_totals(stack: Stack) -> dict[str, SqlTotals]:
    """Return the SQL totals of token calls in Prometheus, by method."""
    found = {
        field: {key[0]: value for key, value in query_prometheus(stack, query).items()}
        for field, query in SIDES.items()
    }
    return {
        method: SqlTotals(
            **{field: values.get(method, 0.0) for field, values in found.items()}
        )
        for method in found["statements"]
    }


def wait_for_sql_totals(stack: Stack) -> dict[str, SqlTotals]:
    """Return them once Prometheus has scraped everything up to now."""
    due = time.time() + LAG_SECONDS
    before, now = None, sql_totals(stack)
    for _ in range(60):
        if (
            before == now
            and max(query_prometheus(stack, SCRAPED).values(), default=0.0) >= due
        ):
            return now
        time.sleep(1.1)
        before, now = now, sql_totals(stack)
    message = "Prometheus did not scrape both sides within a minute"
    raise AssertionError(message)


def subtract_totals(
    now: dict[str, SqlTotals], before: dict[str, SqlTotals]
) -> dict[str, SqlTotals]:
    """Return the increase for methods with new statements."""
    differences = {}
    for method, sides in now.items():
        earlier = asdict(before.get(method, SqlTotals()))
        values = {k: v - earlier[k] for k, v in asdict(sides).items()}
        if values["statements"]:
            differences[method] = SqlTotals(**values)
    return differences


def send_all(stack: Stack, out: Path) -> SentCalls:
    """Send all three token plans, and return the counts of all sources."""
    sides_before, before = wait_for_sql_totals(stack), requests_by_method(stack)
    written: Counter[str] = Counter()
    for name, shares in PLANS.items():
        samples = _send(stack, name, {**SHORT, **shares}, out)
        written.update(s.label.removeprefix("setup ").split()[0] for s in samples)
    sides = subtract_totals(wait_for_sql_totals(stack), sides_before)
    return SentCalls(written, requests_by_method(stack) - before, sides)
