"""Sends token calls of all kinds, and counts them in three sources."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import requests
from rich.console import Console

from keylag import sql_comparison
from keylag.jtl import Sample, read_samples
from keylag.load_plans import find_plan
from keylag.load_runner import send_load
from keylag.load_target import from_stack
from keylag.sample_cloud import connect
from keylag.sql_comparison import TotalsByMethod
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


@dataclass(frozen=True)
class SentCalls:
    """Token calls by method, as JMeter, Prometheus and the database counted them."""

    jmeter: Counter[str]
    prometheus: Counter[str]
    sql: TotalsByMethod


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


def send_all(stack: Stack, run: str, out: Path) -> SentCalls:
    """Send all three token plans, and return the counts of all sources."""
    sql_before, prometheus_before = (
        sql_comparison.wait_for_totals(stack, run),
        requests_by_method(stack),
    )
    jmeter_counts: Counter[str] = Counter()
    for name, shares in PLANS.items():
        samples = _send(stack, name, {**SHORT, **shares}, out)
        jmeter_counts.update(s.label.removeprefix("setup ").split()[0] for s in samples)
    sql_totals = sql_comparison.subtract_totals(
        sql_comparison.wait_for_totals(stack, run), sql_before
    )
    return SentCalls(
        jmeter_counts, requests_by_method(stack) - prometheus_before, sql_totals
    )
