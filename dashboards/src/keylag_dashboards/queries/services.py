"""Queries of *Services*: validations, and what longer caching would save."""

from collections.abc import Mapping
from typing import Final

from keylag_dashboards.promql import named, or_zero, with_spaces

TIMES: Final = ("2", "4", "12")
"""Factors by which replayed caches keep tokens longer."""
STALL_SECONDS: Final = "0.1"
"""A slower cache operation is a stall; a bound of a histogram bucket."""

_VALIDATIONS: Final = "keystone_auth_token_validations_total"
_REQUESTS: Final = "keystone_auth_token_request_duration_seconds_count"
_PHASES: Final = "keystone_auth_token_phase_time_seconds_total"
_REPLAYED: Final = "keystone_auth_token_cache_replayed_misses_total"
_CACHE: Final = "keystone_auth_token_cache_duration_seconds"
_CALLS: Final = "keystone_auth_token_call_duration_seconds"
_OFFLINE: Final = 'keystone_auth_token_validation="offline"'
_AUTH: Final = 'keystone_operation="auth_token"'


def _chosen(metric: str, matchers: str) -> str:
    return f"{metric}{{SERVICE, {matchers}}}" if matchers else f"{metric}{{SERVICE}}"


def _rate(metric: str, by: str = "", matchers: str = "") -> str:
    grouped = f"sum by ({by})" if by else "sum"
    return f"{grouped} (rate({_chosen(metric, matchers)}[RATE]))"


def _grown(metric: str, by: str, matchers: str = "") -> str:
    """Return what a counter grew in the time shown."""
    return f"sum by ({by}) (increase({_chosen(metric, matchers)}[SHOWN]))"


def _missed(matchers: str) -> str:
    """Return the misses of a replayed cache, by service."""
    return _grown(_REPLAYED, "job", matchers)


def _by_method(metric: str, matchers: str = "") -> str:
    return _grown(metric, "job, http_request_method", matchers)


def _per_request(by: str, matchers: str) -> str:
    spent = _rate(_PHASES, by, matchers)
    return f"{spent} / on () group_left () ({_rate(_REQUESTS)} > 0)"


def _age(share: float, result: str) -> str:
    return f"""histogram_quantile({share}, sum by (le) (rate(
        keystone_auth_token_cache_age_seconds_bucket{{SERVICE,
        keystone_auth_token_cache_result="{result}"}}[RATE])))"""


def _lookup(share: float) -> str:
    return f"""histogram_quantile({share}, sum by (le) (
        rate({_CACHE}_bucket{{SERVICE}}[RATE])))"""


def _zero(query: str, label: str, name: str) -> str:
    """Return a query that shows 0 while services report and there is nothing else."""
    return or_zero(query, label, name, f"rate({_REQUESTS}{{SERVICE}}[RATE])")


QUERIES: Final[Mapping[str, str]] = {
    "online_validations": _rate(
        _VALIDATIONS, "job", 'keystone_auth_token_validation="online"'
    ),
    "callers": named(
        """sum by (keystone_caller) (
        rate(keystone_token_validations_total{KEYSTONE}[RATE]))""",
        "keystone_caller",
        "other users",
    ),
    "requests": _rate(_REQUESTS, "job"),
    "not_accepted": _zero(
        _rate(
            _VALIDATIONS,
            "job, keystone_auth_token_result",
            'keystone_auth_token_result!="accepted"',
        ),
        "keystone_auth_token_result",
        "all accepted",
    ),
    "hits": f"""({_rate(_VALIDATIONS, "job", _OFFLINE)}
        or 0 * {_rate(_VALIDATIONS, "job")}) / ({_rate(_VALIDATIONS, "job")} > 0)""",
    "age_hit_p50": _age(0.5, "hit"),
    "age_hit_p95": _age(0.95, "hit"),
    "age_miss_p50": _age(0.5, "miss"),
    "cache_time": "max by (job) (keystone_auth_token_cache_time_seconds{SERVICE})",
    "misses": f"""round({_missed('keystone_auth_token_times="1"')})""",
    **{
        f"saved_{times}": f"""1 - {_missed(f'keystone_auth_token_times="{times}"')}
            / ({_missed('keystone_auth_token_times="1"')} > 0)"""
        for times in TIMES
    },
    "lookup_p50": _lookup(0.5),
    "lookup_p99": _lookup(0.99),
    "stalls": f"""{_rate(f"{_CACHE}_count", "job")}
        - {_rate(f"{_CACHE}_bucket", "job", f'le="{STALL_SECONDS}"')}""",
    "cache_errors": _zero(
        _rate("keystone_auth_token_cache_errors_total", "job, error_type"),
        "error_type",
        "no errors",
    ),
    "share": f"{_rate(_PHASES, 'job', _AUTH)} / ({_rate(_PHASES, 'job')} > 0)",
    "method_share": f"{_by_method(_PHASES, _AUTH)} / ({_by_method(_PHASES)} > 0)",
    "method_time": f"{_by_method(_PHASES, _AUTH)} / ({_by_method(_REQUESTS)} > 0)",
    "method_requests": f"round({_by_method(_REQUESTS)})",
    "auth_phases": with_spaces(_per_request("keystone_phase", _AUTH), "keystone_phase"),
    "service_itself": f"""{_rate(_PHASES, "", 'keystone_operation!="auth_token"')}
        / ({_rate(_REQUESTS)} > 0)""",
    "calls": _rate(f"{_CALLS}_count", "job, keystone_auth_token_call"),
    "call_time": f"""{_rate(f"{_CALLS}_sum", "keystone_auth_token_call")}
        / ({_rate(f"{_CALLS}_count", "keystone_auth_token_call")} > 0)""",
    "failed_calls": _zero(
        _rate(f"{_CALLS}_count", "job, error_type", 'error_type!=""'),
        "error_type",
        "no failures",
    ),
    "retries": _rate(
        "keystone_auth_token_retries_total", "job, keystone_auth_token_retry"
    ),
    "configuration": """count by (job, keystone_auth_token_security_strategy,
        keystone_auth_token_cache) (
        keystone_auth_token_configuration_info{SERVICE})""",
}
