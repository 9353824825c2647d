"""Metrics in Prometheus agree with JMeter's counts and with the slow log."""

import re
from pathlib import Path

import pytest
import requests
from traffic import REQUESTS, TOKENS, SentCalls, query_prometheus

from keylag.paths import CHECKOUT
from keylag.stack import Stack

pytestmark = pytest.mark.stack


def test_prometheus_and_jmeter_count_the_same_requests(sent: SentCalls) -> None:
    assert sent.jmeter == sent.prometheus
    assert sent.jmeter["DELETE"] > 0


def test_each_worker_exports(stack: Stack, sent: SentCalls) -> None:
    query = f"sum by (service_instance_id) ({REQUESTS})"

    workers = {key[0].rpartition("/")[2] for key in query_prometheus(stack, query)}
    assert workers == {"1", "2"}


def test_phases_add_up_to_the_wall_time(stack: Stack, sent: SentCalls) -> None:
    phases = query_prometheus(
        stack, f"sum(keystone_request_phase_time_seconds_total{TOKENS})"
    )
    wall = query_prometheus(
        stack, f"sum(http_server_request_duration_seconds_sum{TOKENS})"
    )

    assert phases[()] == pytest.approx(wall[()], rel=1e-6)


def test_statements_and_cache_calls_are_exported(stack: Stack, sent: SentCalls) -> None:
    for name in ("sql_statements", "cache_calls"):
        (total,) = query_prometheus(
            stack, f"sum(keystone_request_{name}_total{TOKENS})"
        ).values()
        assert total > 0


@pytest.mark.parametrize(
    ("durations", "counted"),
    [
        ("keystone_cache_call_duration_seconds_count", "cache_calls"),
        (
            'keystone_sql_call_duration_seconds_count{keystone_sql_call=~"read|write"}',
            "sql_statements",
        ),
    ],
)
def test_histograms_have_each_call(
    stack: Stack, sent: SentCalls, durations: str, counted: str
) -> None:
    (timed,) = query_prometheus(stack, f"sum({durations})").values()
    (calls,) = query_prometheus(
        stack, f"sum(keystone_request_{counted}_total)"
    ).values()

    assert timed == calls > 0


def test_workers_export_how_long_they_waited_for_a_cpu(
    stack: Stack, sent: SentCalls
) -> None:
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("this kernel does not count the wait")
    query = "sum by (service_instance_id) (process_cpu_wait_seconds_total) > 0"
    waited = query_prometheus(stack, query)

    assert {key[0].rpartition("/")[2] for key in waited} == {"1", "2"}


def test_slow_log_and_keystone_count_the_same_statements(sent: SentCalls) -> None:
    counted = {method: sides.statements for method, sides in sent.sql.items()}
    logged = {method: sides.logged for method, sides in sent.sql.items()}

    assert logged == counted
    assert set(counted) == {"POST", "GET", "DELETE"}


def test_server_time_is_less_than_client_time(sent: SentCalls) -> None:
    for sides in sent.sql.values():
        assert 0 < sides.server_seconds < sides.client_seconds


def test_exported_metrics_are_documented(stack: Stack, sent: SentCalls) -> None:
    page = (CHECKOUT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    url = f"{stack.url('prometheus')}/api/v1/label/__name__/values"
    names = requests.get(url, timeout=10).json()["data"]
    ours = {name for name in names if name.startswith(("keystone_", "http_server_"))}

    series = re.compile("_(bucket|count|sum)$")
    undeclared = {n for n in ours if f"`{series.sub('', n)}`" not in page}

    assert undeclared == set()
    assert "keystone_cache_memoized_calls_total" in ours
    assert "keystone_fernet_primary_key_age_seconds" in ours
