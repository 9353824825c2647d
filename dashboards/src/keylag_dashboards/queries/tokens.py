"""Queries of *Token calls*: rate, errors, latency and breakdown."""

from collections.abc import Mapping
from typing import Final

from keylag_dashboards.categories import MATCHERS, breakdown_queries

AGES: Final[Mapping[str, str]] = {
    "now": "",
    "an hour ago": " offset 1h",
    "a day ago": " offset 1d",
    "a week ago": " offset 1w",
}
SPLITS: Final[Mapping[str, str]] = {
    "auth_method": "keystone_auth_method",
    "status": "http_response_status_code",
    "worker": "instance",
}
"""Name and label by which the breakdown is split."""

_COUNT: Final = "http_server_request_duration_seconds_count"
_SUM: Final = "http_server_request_duration_seconds_sum"
_PHASES: Final = "keystone_request_phase_time_seconds_total"


def _per_call(metric: str, by: str) -> str:
    """Return the rate of a metric per token call, by a label."""
    return f"""sum by ({by}) (rate({metric}{{TOKENS}}[RATE]))
        / sum by ({by}) (rate({_COUNT}{{TOKENS}}[RATE]))"""


def _category(matchers: str) -> str:
    """Return a category's time per call, 0 if it has none."""
    calls = f"sum(rate({_COUNT}{{TOKENS}}[RATE]))"
    spent = f"sum(rate({_PHASES}{{TOKENS, {matchers}}}[RATE]))"
    return f"({spent} or 0 * {calls}) / {calls}"


def _quantile(share: float) -> str:
    return f"""histogram_quantile({share}, sum by (le) (
        rate(http_server_request_duration_seconds_bucket{{TOKENS}}[RATE])))"""


QUERIES: Final[Mapping[str, str]] = {
    "rate": f"sum by (http_request_method) (rate({_COUNT}{{TOKENS}}[RATE]))",
    "refused": f"""sum by (http_request_method, http_response_status_code) (
        rate({_COUNT}{{TOKENS, http_response_status_code=~"[45].."}}[RATE]))""",
    "failures": """sum by (keystone_auth_method, error_type) (
        rate(keystone_auth_failures_total{KEYSTONE}[RATE]))""",
    "mean": _per_call(_SUM, "http_request_method"),
    "not_in_time": """keylag:token_calls_not_in_time:ratio_rate5m{job=~"$job"}""",
    "statements": _per_call(
        "keystone_request_sql_statements_total", "http_request_method"
    ),
    "cache_calls": _per_call(
        "keystone_request_cache_calls_total", "http_request_method"
    ),
    "p50": _quantile(0.5),
    "p95": _quantile(0.95),
    "p99": _quantile(0.99),
    "duration_buckets": """sum by (le) (
        increase(http_server_request_duration_seconds_bucket{TOKENS}[RATE]))""",
    **{f"category_{name}": _category(matchers) for name, matchers in MATCHERS.items()},
    **{
        query: asked
        for name, label in SPLITS.items()
        for query, asked in breakdown_queries(f"by_{name}", "TOKENS", label).items()
    },
    **{
        f"wall {age}": f"""sum(keylag:token_category_seconds:rate5m{{RECORDED}}{offset})
            / sum(keylag:token_calls:rate5m{{RECORDED}}{offset})"""
        for age, offset in AGES.items()
    },
    **{
        f"categories {age}": f"""
            sum by (category) (keylag:token_category_seconds:rate5m{{RECORDED}}{offset})
            / on () group_left () sum(keylag:token_calls:rate5m{{RECORDED}}{offset})"""
        for age, offset in AGES.items()
    },
}
