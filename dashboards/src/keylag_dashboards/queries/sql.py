"""Queries of *SQL*: Keystone, the database and ProxySQL."""

from collections.abc import Mapping
from typing import Final

_CALLS: Final = """sum(
    rate(http_server_request_duration_seconds_count{TOKENS}[RATE]))"""
_CLIENT: Final = """sum(rate(keystone_request_phase_time_seconds_total{
    TOKENS, keystone_phase="sql"}[RATE]))"""
_SERVER: Final = """sum(rate(
    keylag_slow_log_statement_duration_seconds_sum{TOKENS_LOG}[RATE]))"""
_STATEMENTS: Final = """sum(
    rate(keystone_request_sql_statements_total{TOKENS}[RATE]))"""


def _log_rate(counter: str) -> str:
    return f"""sum by (table_class) (
        rate(keylag_slow_log_{counter}{{EXPORTER}}[RATE]))"""


def _log_increase(counter: str, by: str = "table_class") -> str:
    """Return the increase of a slow-log counter over the time shown."""
    return f"""sum by ({by}) (
        increase(keylag_slow_log_{counter}{{EXPORTER}}[SHOWN]))"""


def _keystone_increase(counter: str) -> str:
    """Return the increase of a Keystone counter, by the slow log's label name."""
    return f"""sum by (table_class) (label_replace(
        increase(keystone_sql_{counter}_total{{KEYSTONE}}[SHOWN]),
        "table_class", "$1", "keystone_sql_table_class", "(.*)"))"""


def _per_call(metric: str, matchers: str) -> str:
    """Return a metric's increase by operation, per token call."""
    return f"""sum by (operation) (label_replace(
        increase({metric}{{{matchers}}}[SHOWN]),
        "operation", "$1", "keystone_operation", "(.+)"))
        / on () group_left () sum(increase(
        http_server_request_duration_seconds_count{{TOKENS}}[SHOWN]))"""


def _top(counter: str) -> str:
    """Return a counter of the fifteen classes with the most time."""
    text = (
        "max by (id, table_class, fingerprint) (keylag_slow_log_class_info{EXPORTER})"
    )
    by = "id, table_class"
    return f"""{_log_increase(counter, by)} * on ({by}) group_right () {text}
        and on ({by}) topk(15, {_log_increase("query_time_seconds_total", by)})"""


def _digest(counter: str) -> str:
    """Return a counter of the fifteen ProxySQL digests with the most time."""
    time = """sum by (digest) (
        increase(keylag_proxysql_digest_time_seconds_total{EXPORTER}[SHOWN]))"""
    return f"""sum by (digest) (
        increase(keylag_proxysql_digest_{counter}{{EXPORTER}}[SHOWN]))
        * on (digest) group_right ()
        max by (digest, digest_text) (keylag_proxysql_digest_info{{EXPORTER}})
        and on (digest) topk(15, {time})"""


QUERIES: Final[Mapping[str, str]] = {
    "client": f"{_CLIENT} / {_CALLS}",
    "server": f"{_SERVER} / {_CALLS}",
    "outside_per_statement": f"({_CLIENT} - {_SERVER}) / {_STATEMENTS}",
    "round_trips": """sum by (http_request_method) (
        rate(keystone_request_sql_statements_total{TOKENS}[RATE]))
        / sum by (http_request_method) (
        rate(http_server_request_duration_seconds_count{TOKENS}[RATE]))""",
    "operation_client": _per_call(
        "keystone_request_phase_time_seconds_total", 'TOKENS, keystone_phase="sql"'
    ),
    "operation_server": _per_call(
        "keylag_slow_log_statement_duration_seconds_sum", "TOKENS_LOG"
    ),
    "operation_logged": _per_call(
        "keylag_slow_log_statement_duration_seconds_count", "TOKENS_LOG"
    ),
    "class_sent": _keystone_increase("statements"),
    "class_rows": _keystone_increase("rows"),
    "class_logged": _log_increase("statement_duration_seconds_count"),
    "class_server": _log_increase("statement_duration_seconds_sum"),
    "class_p95": f"""histogram_quantile(0.95, {
        _log_increase("statement_duration_seconds_bucket", "table_class, le")
    })""",
    "pool_wait": f"""sum(rate(keystone_request_phase_time_seconds_total{{
        TOKENS, keystone_phase="sql_pool"}}[RATE])) / {_CALLS}""",
    "checkouts": "sum(rate(keystone_sql_pool_checkouts_total{KEYSTONE}[RATE]))",
    "connects": "sum(rate(keystone_sql_connects_total{KEYSTONE}[RATE]))",
    "waits": "sum(rate(keystone_sql_pool_waits_total{KEYSTONE}[RATE]))",
    "errors": """sum by (keystone_sql_table_class, error_type) (
        rate(keystone_sql_errors_total{KEYSTONE}[RATE]))""",
    "retries": "sum(rate(keystone_sql_retries_total{KEYSTONE}[RATE]))",
    "top_time": _top("query_time_seconds_total"),
    "top_calls": _top("calls_total"),
    "top_examined": _top("rows_examined_total"),
    "top_sent": _top("rows_sent_total"),
    "examined": f"{_log_rate('rows_examined_total')} / {_log_rate('rows_sent_total')}",
    "lock_time": _log_rate("lock_time_seconds_total"),
    "full_scans": _log_rate("full_scans_total"),
    "temporary": _log_rate("temporary_tables_total"),
    "log_behind": "keylag_slow_log_behind_bytes{EXPORTER}",
    "proxy_calls": """sum by (hostgroup) (
        rate(keylag_proxysql_calls_total{EXPORTER}[RATE]))""",
    "proxy_p95": """histogram_quantile(0.95, sum by (command, le) (rate(
        keylag_proxysql_command_duration_seconds_bucket{EXPORTER}[RATE])))""",
    "proxy_hits": """
        sum(rate(keylag_proxysql_query_cache_hits_total{EXPORTER}[RATE]))
        / sum(rate(keylag_proxysql_query_cache_lookups_total{EXPORTER}[RATE]))""",
    "proxy_used": """sum by (hostgroup, server) (
        keylag_proxysql_pool_used_connections{EXPORTER})""",
    "proxy_free": """sum by (hostgroup, server) (
        keylag_proxysql_pool_free_connections{EXPORTER})""",
    "proxy_pool": """sum by (outcome) (
        rate(keylag_proxysql_pool_requests_total{EXPORTER}[RATE]))""",
    "proxy_timeouts": """sum(
        rate(keylag_proxysql_pool_timeouts_total{EXPORTER}[RATE]))""",
    "proxy_delayed": """sum(rate(
        keylag_proxysql_pool_delayed_connections_total{EXPORTER}[RATE]))""",
    "digest_time": _digest("time_seconds_total"),
    "digest_calls": _digest("calls_total"),
    "digest_rows": _digest("rows_sent_total"),
    "multiplexing": """
        sum(rate(keylag_proxysql_calls_total{
            EXPORTER, hostgroup!="cache"}[RATE]))
        / sum(keylag_proxysql_pool_used_connections{EXPORTER}
            + keylag_proxysql_pool_free_connections{EXPORTER})""",
}
