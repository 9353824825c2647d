"""Queries of *Revocation*: cost of a check, fetched events, and the table."""

from collections.abc import Mapping
from typing import Final

from keylag_dashboards.promql import named, or_zero
from keylag_dashboards.queries import REPORTING

PARTS: Final[Mapping[str, str]] = {
    "SQL": 'keystone_phase=~"sql|sql_pool|orm"',
    "cache": 'keystone_phase="cache"',
    "matching": 'keystone_phase="revocation_match"',
    "other": 'keystone_phase!~"sql|sql_pool|orm|cache|revocation_match"',
}
"""The parts of a check, with their matchers."""
_CALLS: Final = """sum(
    rate(http_server_request_duration_seconds_count{TOKENS}[RATE]))"""
_CHECKS: Final = """keystone_cache_memoized_calls_total{
    KEYSTONE, keystone_cache_function=~".*check_revocation.*\""""


def _of_table(query: str, by: str = "") -> str:
    """Return a sum over tables: exporters of one region read the same one."""
    return f"sum by ({by}) (max by (cluster, region, kind) ({query}))"


QUERIES: Final[Mapping[str, str]] = {
    **{
        f"check {part}": f"""sum(rate(keystone_request_phase_time_seconds_total{{
            TOKENS, keystone_operation="check_revocation",
            {matchers}}}[RATE])) / ({_CALLS} > 0)"""
        for part, matchers in PARTS.items()
    },
    "checks": f"""sum by (keystone_cache_result) (
        rate({_CHECKS}}}[RATE]))""",
    "fetched": or_zero(
        """sum by (keystone_revocation_kind) (
        rate(keystone_revocation_events_fetched_total{KEYSTONE}[RATE]))""",
        "keystone_revocation_kind",
        "no events",
        REPORTING,
    ),
    "written": or_zero(
        """sum by (keystone_revocation_kind) (
        rate(keystone_revocation_events_written_total{KEYSTONE}[RATE]))""",
        "keystone_revocation_kind",
        "no events",
        REPORTING,
    ),
    "server": named(
        """sum by (operation) (rate(
        keylag_slow_log_statement_duration_seconds_sum{
            EXPORTER, table_class="revocation_event"}[RATE]))""",
        "operation",
        "all operations",
    ),
    "live": or_zero(
        f"({_of_table('keylag_revocations_live_events{EXPORTER}', 'kind')} > 0)",
        "kind",
        "no events",
        "keylag_revocations_live_events{EXPORTER}",
    ),
    "expired": _of_table("keylag_revocations_expired_events{EXPORTER}"),
    "limit": f"""max(keylag_revocations_count_limit{{EXPORTER}}) and on ()
        {_of_table("keylag_revocations_live_events{EXPORTER}")}
        > 0.2 * max(keylag_revocations_count_limit{{EXPORTER}})""",
    "growth": _of_table("rate(keylag_revocations_inserted_total{EXPORTER}[RATE])"),
    "oldest": "max(keylag_revocations_oldest_event_age_seconds{EXPORTER})",
    "per_check": "max by (token_age) (keylag_revocations_events_per_check{EXPORTER})",
    "predicted": """max by (token_age) (
        keylag_revocations_predicted_check_seconds{EXPORTER})""",
    "indexes": """min by (columns, since) (
        keylag_revocations_index_present{EXPORTER})""",
    "deleted": """sum by (http_response_status_code) (rate(
        http_server_request_duration_seconds_count{KEYSTONE,
            http_route="/v3/auth/tokens", http_request_method="DELETE",
            http_response_status_code=~"2.."}[RATE])) > 0""",
    "flushed": """sum by (keystone_cache_region) (
        rate(keystone_cache_invalidations_total{KEYSTONE}[RATE])) > 0""",
}
