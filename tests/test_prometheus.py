"""What JMeter sent is what Prometheus has, from every worker."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from rich.console import Console

from keylag import sql_sides
from keylag.jtl import read
from keylag.plans import find
from keylag.sending import send
from keylag.sql_sides import BySide
from keylag.stack import Stack
from keylag.state import CHECKOUT
from keylag.target import of_stack

pytestmark = pytest.mark.stack

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
class Sent:
    """Token calls by method, as each of three counted them."""

    jmeter: Counter[str]
    prometheus: Counter[str]
    sql: BySide


def ask(stack: Stack, query: str) -> dict[tuple[str, ...], float]:
    """Return the values of a query by the values of their labels."""
    url = f"{stack.url('prometheus')}/api/v1/query"
    answer = requests.get(url, params={"query": query}, timeout=10).json()
    return {
        tuple(series["metric"].values()): float(series["value"][1])
        for series in answer["data"]["result"]
    }


def requests_by_method(stack: Stack) -> Counter[str]:
    """Return how many token calls Prometheus knows of."""
    query = f"sum by (http_request_method) ({REQUESTS})"
    return Counter({key[0]: round(n) for key, n in ask(stack, query).items()})


@pytest.fixture(scope="module")
def sent(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Sent:
    """Send all three plans, and ask everybody what they saw of it."""
    out: Path = tmp_path_factory.mktemp("load")
    sides_before, before = sql_sides.settled(stack), requests_by_method(stack)
    written: Counter[str] = Counter()
    for name, shares in PLANS.items():
        chosen = {**SHORT, **shares}
        result = send(
            find(name), of_stack(stack), chosen, out / name, Console(quiet=True)
        )
        samples, notes = read(result.samples)
        assert notes == []
        assert all(sample.success for sample in samples)
        written.update(s.label.removeprefix("setup ").split()[0] for s in samples)
    sides = sql_sides.since(sql_sides.settled(stack), sides_before)
    return Sent(written, requests_by_method(stack) - before, sides)


def test_prometheus_counts_what_jmeter_sent(sent: Sent) -> None:
    """Not one request is lost or counted twice, by method."""
    assert sent.jmeter == sent.prometheus
    assert sent.jmeter["DELETE"] > 0


def test_both_workers_export(stack: Stack, sent: Sent) -> None:
    """Each worker is an instance of its own."""
    query = f"sum by (service_instance_id) ({REQUESTS})"

    workers = {key[0].rpartition("/")[2] for key in ask(stack, query)}
    assert workers == {"1", "2"}


def test_phases_add_up_to_the_wall_time(stack: Stack, sent: Sent) -> None:
    """In Prometheus too: the phases of token calls sum to their duration."""
    phases = ask(stack, f"sum(keystone_request_phase_time_seconds_total{TOKENS})")
    wall = ask(stack, f"sum(http_server_request_duration_seconds_sum{TOKENS})")

    assert phases[()] == pytest.approx(wall[()], rel=1e-6)


def test_statements_and_cache_calls_are_there(stack: Stack, sent: Sent) -> None:
    """The counts are exported beside the times."""
    for name in ("sql_statements", "cache_calls"):
        (total,) = ask(stack, f"sum(keystone_request_{name}_total{TOKENS})").values()
        assert total > 0


def test_the_database_logged_what_keystone_counted(sent: Sent) -> None:
    """Each statement of a token call is in the slow log, under its route."""
    counted = {method: sides.statements for method, sides in sent.sql.items()}
    logged = {method: sides.logged for method, sides in sent.sql.items()}

    assert logged == counted
    assert set(counted) == {"POST", "GET", "DELETE"}


def test_the_servers_time_is_a_part_of_the_clients(sent: Sent) -> None:
    """What Keystone waits for is more than what the database works."""
    for sides in sent.sql.values():
        assert 0 < sides.server_seconds < sides.client_seconds


def test_only_declared_metrics_come_out(stack: Stack, sent: Sent) -> None:
    """The page of metrics has every name that Prometheus has got."""
    page = (CHECKOUT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    url = f"{stack.url('prometheus')}/api/v1/label/__name__/values"
    names = requests.get(url, timeout=10).json()["data"]
    ours = {name for name in names if name.startswith(("keystone_", "http_server_"))}

    series = re.compile("_(bucket|count|sum)$")
    undeclared = {n for n in ours if f"`{series.sub('', n)}`" not in page}

    assert undeclared == set()
    assert "keystone_cache_memoized_calls_total" in ours
    assert "keystone_fernet_primary_key_age_seconds" in ours
