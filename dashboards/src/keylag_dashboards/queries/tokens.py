"""Queries of *Token calls*: rate, errors, latency and breakdown."""

from collections.abc import Mapping
from typing import Final

from keylag_dashboards.categories import TITLES, breakdown_queries
from keylag_dashboards.causes import METRICS
from keylag_dashboards.config import OBJECTIVE_SHARE
from keylag_dashboards.promql import named, or_zero
from keylag_dashboards.queries import REPORTING

AGES: Final[Mapping[str, str]] = {
    "now": "",
    "1 d ago": " offset 1d",
    "1 w ago": " offset 1w",
}
QUANTILES: Final[Mapping[str, float]] = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
SPLITS: Final[Mapping[str, str]] = {
    "auth_method": "keystone_auth_method",
    "status": "http_response_status_code",
    "controller": "host_name",
}
"""Name and label by which the breakdown is split."""
_BUDGET: Final = round(1 - OBJECTIVE_SHARE, 6)
FAST_BURN: Final = round(14.4 * _BUDGET, 6)
SLOW_BURN: Final = round(6 * _BUDGET, 6)
"""Shares of calls not in time at which alerts fire."""
MAX_CAUSES: Final = 3
"""Likely causes that are shown."""
BUDGET_DAYS: Final = "7d"

_COUNT: Final = "http_server_request_duration_seconds_count"
_SUM: Final = "http_server_request_duration_seconds_sum"
_CALLS: Final = """sum(
    avg_over_time(keylag:token_calls:rate{BY_METHOD}[STEP]))"""
_WALL: Final = """sum(
    avg_over_time(keylag:token_seconds:rate{BY_METHOD}[STEP]))"""


def _per_call(metric: str, by: str) -> str:
    """Return the rate of a metric per token call, by a label."""
    return f"""sum by ({by}) (rate({metric}{{TOKENS}}[RATE]))
        / (sum by ({by}) (rate({_COUNT}{{TOKENS}}[RATE])) > 0)"""


def _category(title: str, whole: str) -> str:
    """Return a category's time as a part of `whole`, 0 if it has none."""
    spent = f"""sum(avg_over_time(keylag:token_category_seconds:rate{{
        BY_METHOD, category="{title}"}}[STEP]))"""
    return f"({spent} or 0 * {whole}) / ({whole} > 0)"


def _quantile(share: float) -> str:
    return f"""histogram_quantile({share}, sum by (le) (
        avg_over_time(keylag:token_duration_bucket:rate{{BY_METHOD}}[STEP])))"""


def _quantiles(offset: str) -> str:
    """Return all quantiles over five minutes at a time, or NaN if there are no data."""
    buckets = f"""sum by (le) (avg_over_time(
        keylag:token_duration_bucket:rate{{BY_METHOD}}[5m]{offset}))"""
    return " or ".join(
        f"""label_replace(histogram_quantile({share}, {buckets})
            or on () vector(0) / 0, "latency", "{name}", "", "")"""
        for name, share in QUANTILES.items()
    )


def _categories(offset: str = "") -> str:
    """Return each category's time per call over five minutes at a time."""
    spent, calls = (
        f"avg_over_time(keylag:token_{series}:rate{{BY_METHOD}}[5m]{offset})"
        for series in ("category_seconds", "calls")
    )
    return f"sum by (category) ({spent}) / on () group_left () (sum({calls}) > 0)"


def _in_time(shown: str) -> str:
    """Return the share of calls that were fast enough and without a 5xx."""
    good, calls = (
        f"sum(sum_over_time(keylag:token_{series}:rate{{BY_METHOD}}[{shown}]))"
        for series in ("calls_in_time", "calls")
    )
    return f"{good} / ({calls} > 0)"


def _burns(limit: float, long: str, short: str) -> str:
    ratio = "keylag:token_calls_not_in_time:ratio_rate{}{{JOBS}} > {}"
    return f"max({ratio.format(long, limit)} and {ratio.format(short, limit)})"


_CALLED: Final = "(sum(keylag:token_calls:rate{JOBS}) > 0) ^ 0"
HEALTHY, NO_CALLS, SPENT, SHRINKS, SLOW = range(5)
"""Values of the query `state`."""
ANSWERS: Final[Mapping[str, str]] = {
    "state": f"""{SLOW} * {_burns(FAST_BURN, "1h", "5m")} ^ 0
        or on () {SHRINKS} * {_burns(SLOW_BURN, "6h", "30m")} ^ 0
        or on () {SPENT} * ({_in_time(BUDGET_DAYS)} < {OBJECTIVE_SHARE}) ^ 0
            * {_CALLED}
        or on () {HEALTHY} * {_CALLED}
        or on () vector({NO_CALLS})""",
    "calls_now": _CALLS,
    "in_time": _in_time("SHOWN"),
    "budget_left": f"clamp_min(1 - (1 - {_in_time(BUDGET_DAYS)}) / {_BUDGET}, 0)",
    "widest": f"topk(1, {_categories()})",
    "grew_most": f"topk(1, {_categories()} - {_categories(' offset 1d')} > 0)",
    **{f"quantiles {age}": _quantiles(offset) for age, offset in AGES.items()},
}

_COST: Final = f"{METRICS['cost']}{{CLOUD}}"
LIKELY_CAUSES: Final = f"""topk({MAX_CAUSES},
        sum by (id, name, dashboard) ({_COST}) > 0)
    or on () label_replace(0 * max({_COST}),
        "name", "no cause found", "", "")
    or on () label_replace(0 * max({METRICS["success"]}{{CLOUD}}),
        "name", "unknown: no token calls in five minutes", "", "")"""
"""The most expensive findings; without any, why there are none."""

QUERIES: Final[Mapping[str, str]] = {
    **ANSWERS,
    "likely_causes": LIKELY_CAUSES,
    "rate": f"sum by (http_request_method) ({REPORTING})",
    "refused": or_zero(
        f"""sum by (http_request_method, http_response_status_code) (
        rate({_COUNT}{{TOKENS, http_response_status_code=~"[45].."}}[RATE]))""",
        "http_request_method",
        "no refusals",
        REPORTING,
    ),
    "failures": or_zero(
        """sum by (keystone_auth_method, error_type) (
        rate(keystone_auth_failures_total{KEYSTONE}[RATE]))""",
        "error_type",
        "no failures",
        REPORTING,
    ),
    "mean": _per_call(_SUM, "http_request_method"),
    "not_in_time": "keylag:token_calls_not_in_time:ratio_rate5m{JOBS}",
    "statements": _per_call(
        "keystone_request_sql_statements_total", "http_request_method"
    ),
    "cache_calls": _per_call(
        "keystone_request_cache_calls_total", "http_request_method"
    ),
    **{name: _quantile(share) for name, share in QUANTILES.items()},
    "duration_buckets": """sum by (le) (
        avg_over_time(keylag:token_duration_bucket:rate{BY_METHOD}[STEP]))""",
    **{f"category_{name}": _category(title, _CALLS) for name, title in TITLES.items()},
    **{f"share_{name}": _category(title, _WALL) for name, title in TITLES.items()},
    **{
        query: named(asked, label, "none")
        for name, label in SPLITS.items()
        for query, asked in breakdown_queries(f"by_{name}", "BY_METHOD", label).items()
    },
    **{
        f"wall {age}": f"""sum(avg_over_time(
            keylag:token_seconds:rate{{BY_METHOD}}[5m]{offset}))
            / (sum(avg_over_time(
            keylag:token_calls:rate{{BY_METHOD}}[5m]{offset})) > 0)"""
        for age, offset in AGES.items()
    },
    **{f"categories {age}": _categories(offset) for age, offset in AGES.items()},
}
EXEMPLARS: Final = "http_server_request_duration_seconds_bucket{TOKENS}"
