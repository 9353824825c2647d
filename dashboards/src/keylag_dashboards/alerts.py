"""The alerts. Each has a heading in docs/runbook.md and a test."""

from typing import Final

from keylag_dashboards.causes import CAUSES
from keylag_dashboards.config import OBJECTIVE_SECONDS, OBJECTIVE_SHARE
from keylag_dashboards.model import Alert, Severity
from keylag_dashboards.telemetry_alerts import TELEMETRY_ALERTS

ERROR_BUDGET: Final = round(1 - OBJECTIVE_SHARE, 6)
"""Share of calls that may be slow or fail."""
STALL_SECONDS: Final = 0.02
"""Mean duration of a cache round trip above which the cache stalls."""
MIN_HIT_RATIO: Final = 0.5
CACHE_ERROR_WINDOW: Final = "10m"
"""Longer than oslo.cache's `memcache_dead_retry` of 5 minutes.

A dead server causes one error per retry. Rate window and waiting time are equal, so
a single error never fires the alert, and repeated errors do not reset it.
"""
MAX_POOL_WAIT_SHARE: Final = 0.05
"""Share of check-outs that may wait for a connection."""
MAX_HASHING_SHARE: Final = 0.5
"""Share of all workers' time that hashing may take."""
MAX_CHECK_SECONDS: Final = 0.05
"""Time that revocation events may add to each check."""

_NOT_IN_TIME: Final = "keylag:token_calls_not_in_time:ratio_rate"


def _burn_rate_query(times: float, long: str, short: str) -> str:
    """Return a query for a budget that burns `times` too fast.

    Two windows, as in chapter 5 of The Site Reliability Workbook: the long one shows
    that the burn is significant, the short one that it continues.
    """
    limit = f"> {round(times * ERROR_BUDGET, 6)}"
    return f"{_NOT_IN_TIME}{long} {limit} and {_NOT_IN_TIME}{short} {limit}"


def _burn_alert(
    name: str, severity: Severity, times: float, long: str, short: str
) -> Alert:
    return Alert(
        name,
        severity,
        "2m",
        _burn_rate_query(times, long, short),
        "Token calls of {{ $labels.job }} are slow or fail.",
        f"{{{{ $value | humanizePercentage }}}} of the token calls took over"
        f" {OBJECTIVE_SECONDS} s or failed in the last {long}; the"
        f" objective allows {ERROR_BUDGET:.0%}.",
        "tokens: Calls not in time",
        tuple(CAUSES),
    )


_MISS: Final = 'keystone_cache_result="miss"'


def _lookup_rate(matchers: str = "") -> str:
    """Return the rate of memoized calls, of workers that have a cache backend."""
    return f"""sum by (JOB) (
        rate(keystone_cache_memoized_calls_total{{{matchers}}}[5m])
        unless on (JOB, instance) keystone_configuration_info{{
            keystone_cache_backend=~"dogpile.cache.null|disabled"}})"""


ALERTS: Final[tuple[Alert, ...]] = (
    _burn_alert("KeylagTokenLatencyBurnsFast", "page", 14.4, "1h", "5m"),
    _burn_alert("KeylagTokenLatencyBurnsSlowly", "ticket", 6.0, "6h", "30m"),
    Alert(
        "KeylagCacheStalls",
        "page",
        "5m",
        f"""sum by (JOB) (rate(keystone_request_phase_time_seconds_total{{
                keystone_phase="cache"}}[5m]))
            / (sum by (JOB) (rate(keystone_request_cache_calls_total[5m])) > 0)
            > {STALL_SECONDS}""",
        "The cache backend of {{ $labels.job }} stalls.",
        "A round trip takes {{ $value | humanizeDuration }} on average.",
        "cache: Time per round trip",
        ("C2", "C3", "C4", "W2"),
    ),
    Alert(
        "KeylagCacheErrors",
        "page",
        CACHE_ERROR_WINDOW,
        f"""sum by (JOB, error_type) (
            increase(keystone_cache_errors_total[{CACHE_ERROR_WINDOW}])) > 0""",
        "The cache backend of {{ $labels.job }} fails: {{ $labels.error_type }}.",
        '{{ $value | printf "%.0f" }} calls to it failed in the last ten minutes.',
        "cache: Errors and stalls",
        ("C2", "C6"),
    ),
    Alert(
        "KeylagCacheHitRatioCollapsed",
        "ticket",
        "15m",
        f"1 - {_lookup_rate(_MISS)} / {_lookup_rate()} < {MIN_HIT_RATIO}",
        "The cache hit ratio of {{ $labels.job }} collapsed.",
        "Only {{ $value | humanizePercentage }} of the look-ups are hits.",
        "cache: Hits by region",
        ("C2", "C5", "C8", "C9", "C10", "R3"),
    ),
    Alert(
        "KeylagRevocationGrowth",
        "ticket",
        "15m",
        f"""max by (cluster, region, instance) (last_over_time(
            keylag_revocations_predicted_check_seconds{{token_age="whole"}}[15m]))
            > {MAX_CHECK_SECONDS}""",
        "Revocation events slow down every token check.",
        "They add {{ $value | humanizeDuration }} to each check of a token.",
        "revocation: Predicted time of a check",
        ("R1", "R2", "R3"),
    ),
    Alert(
        "KeylagSqlPoolExhausted",
        "page",
        "5m",
        f"""sum by (JOB) (rate(keystone_sql_pool_waits_total[5m]))
            / sum by (JOB) (rate(keystone_sql_pool_checkouts_total[5m]))
            > {MAX_POOL_WAIT_SHARE}""",
        "Calls of {{ $labels.job }} wait for a database connection.",
        "{{ $value | humanizePercentage }} of the check-outs found the pool empty.",
        "sql: Pool",
        ("D5", "D1", "D2", "D3", "D4", "D7"),
    ),
    Alert(
        "KeylagProxySqlPoolExhausted",
        "page",
        "5m",
        """sum by (cluster, region, instance) (
            increase(keylag_proxysql_pool_timeouts_total[5m])) > 0""",
        "Statements in ProxySQL time out waiting for a backend connection.",
        '{{ $value | printf "%.0f" }} statements timed out in the last five minutes.',
        "sql: Backend requests",
        ("D7", "D2", "D3", "D4"),
    ),
    Alert(
        "KeylagHashingSaturated",
        "page",
        "10m",
        f"""sum by (JOB) (rate(keystone_request_phase_time_seconds_total{{
                keystone_phase="password_hash"}}[5m]))
            / on (JOB) count by (JOB) (
                count by (JOB, instance) (keystone_configuration_info))
            > {MAX_HASHING_SHARE}""",
        "Password hashing saturates the workers of {{ $labels.job }}.",
        "{{ $value | humanizePercentage }} of all workers' time is hashing.",
        "workers: Share of hashing",
        ("H1", "H2", "H3"),
    ),
    *TELEMETRY_ALERTS,
)
