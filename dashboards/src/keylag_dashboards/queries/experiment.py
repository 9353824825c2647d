"""Queries of *Experiment*: one series per arm, by the label keylag_run."""

from collections.abc import Mapping
from typing import Final

from keylag_dashboards.categories import breakdown_queries
from keylag_dashboards.promql import hit_ratio, or_zero

_ARM: Final = "sum by (keylag_run)"
_COUNT: Final = "http_server_request_duration_seconds_count{ARMS}"
_MEMOIZED: Final = "keystone_cache_memoized_calls_total"


def _per_call(metric: str) -> str:
    return f"""{_ARM} (rate({metric}{{ARMS}}[RATE]))
        / ({_ARM} (rate({_COUNT}[RATE])) > 0)"""


def _quantile(share: float) -> str:
    return f"""histogram_quantile({share}, sum by (keylag_run, le) (
        rate(http_server_request_duration_seconds_bucket{{ARMS}}[RATE])))"""


_HITS: Final = f"""{_ARM} (rate({_MEMOIZED}{{
    ARM_WORKERS, keystone_cache_result="hit"}}[RATE]))"""
_LOOKUPS: Final = f"{_ARM} (rate({_MEMOIZED}{{ARM_WORKERS}}[RATE]))"

QUERIES: Final[Mapping[str, str]] = {
    "rate": f"{_ARM} (rate({_COUNT}[RATE]))",
    "under_load": f"""sum by (keylag_run, keylag_round) (
        rate({_COUNT}[$__rate_interval])) > 0""",
    "mean": _per_call("http_server_request_duration_seconds_sum"),
    "p50": _quantile(0.5),
    "p95": _quantile(0.95),
    "p99": _quantile(0.99),
    "statements": _per_call("keystone_request_sql_statements_total"),
    "cache_calls": _per_call("keystone_request_cache_calls_total"),
    "hit_ratio": hit_ratio(_HITS, _LOOKUPS),
    **breakdown_queries("arm", "ARMS_BY_METHOD", "keylag_run"),
    "failed": or_zero(
        """sum by (keylag_run, http_response_status_code) (
        rate(http_server_request_duration_seconds_count{
            ARMS, http_response_status_code=~"[45].."}[RATE]))""",
        "keylag_run",
        "no refusals",
        f"rate({_COUNT}[RATE])",
    ),
    "configuration": """max by (keylag_run, keystone_cache_backend,
        keystone_token_provider, keystone_password_hash_algorithm) (
        max_over_time(keystone_configuration_info{ARM_WORKERS}[SHOWN]))""",
}
