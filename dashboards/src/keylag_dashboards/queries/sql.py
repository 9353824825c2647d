"""Queries of *SQL*: Keystone, the database and ProxySQL."""

from collections.abc import Mapping
from typing import Final

from keylag_dashboards.promql import named, or_zero
from keylag_dashboards.queries import REPORTING

_CALLS: Final = """sum(
    rate(http_server_request_duration_seconds_count{TOKENS}[RATE]))"""
_CLIENT: Final = """sum(rate(keystone_request_phase_time_seconds_total{
    TOKENS, keystone_phase="sql"}[RATE]))"""
_SERVER: Final = """sum(avg_over_time(
    keylag:logged_token_statement_duration_seconds_sum:rate{TOKENS_LOG}[STEP]))"""
_STATEMENTS: Final = """sum(
    rate(keystone_request_sql_statements_total{TOKENS}[RATE]))"""
_ALL_CALLS: Final = """sum(
    rate(http_server_request_duration_seconds_count{TOKENS_OF_ALL}[RATE]))"""
_ALL_STATEMENTS: Final = """sum(
    rate(keystone_request_sql_statements_total{TOKENS_OF_ALL}[RATE]))"""


RARE: Final[Mapping[str, str]] = {
    "lock_time": "lock_time_seconds_total",
    "full_scans": "full_scans_total",
    "temporary": "temporary_tables_total",
}
"""Counters that are 0, or nearly, for most classes."""


def _log_rate(counter: str) -> str:
    return f"""sum by (table_class) (
        avg_over_time(keylag:logged_class_{counter}:rate{{EXPORTER}}[STEP]))"""


def _active(counter: str) -> str:
    """Return the rate of a slow-log counter for classes where it grew, or a zero.

    `@ end()` adds the time shown up once, not at each step.
    """
    grew = f"""sum by (table_class) (sum_over_time(
        keylag:logged_class_{counter}:rate{{EXPORTER}}[SHOWN] @ end())) > 0"""
    rate = f"({_log_rate(counter)} and on (table_class) {grew})"
    return or_zero(rate, "table_class", "none", "keylag_slow_log_classes{EXPORTER}")


def _log_increase(counter: str, by: str = "table_class") -> str:
    """Return the increase of a slow-log counter over the time shown."""
    return f"""sum by ({by}) (sum_over_time(
        keylag:logged_class_{counter}:rate{{EXPORTER}}[SHOWN]) * EVERY)"""


def _token_log_increase(part: str) -> str:
    return f"""sum_over_time(
        keylag:logged_token_statement_duration_seconds_{part}:rate{{TOKENS_LOG}}[SHOWN]
        ) * EVERY"""


def _statement_increase(counter: str) -> str:
    return f"""sum by (id) (
        sum_over_time(keylag:logged_job_statement_{counter}:rate{{ALL_EXPORTERS}}[SHOWN])
        or sum_over_time(
        keylag:logged_statement_{counter}:rate{{CHOSEN_EXPORTERS}}[SHOWN])) * EVERY"""


def _keystone_increase(counter: str) -> str:
    """Return the increase of a Keystone counter, by the slow log's label name."""
    return f"""sum by (table_class) (label_replace(
        increase(keystone_sql_{counter}_total{{KEYSTONE}}[SHOWN]),
        "table_class", "$1", "keystone_sql_table_class", "(.*)"))"""


def _per_call(increase: str, calls: str = "TOKENS") -> str:
    """Return an increase by operation, per token call."""
    spent = f"""sum by (operation) (label_replace({increase},
        "operation", "$1", "keystone_operation", "(.+)"))"""
    return f"""{named(spent, "operation", "all, without comments")}
        / on () group_left () (sum(increase(
        http_server_request_duration_seconds_count{{{calls}}}[SHOWN])) > 0)"""


def _top(counter: str) -> str:
    """Return a counter of the fifteen classes with the most time."""
    text = "max by (id, statement) (keylag_slow_log_class_info{EXPORTER})"
    return f"""{_statement_increase(counter)} * on (id) group_right () {text}
        and on (id) topk(15, {_statement_increase("query_time_seconds_total")})"""


def _digest(counter: str) -> str:
    """Return a counter of the fifteen ProxySQL digests with the most time."""
    time = """sum by (digest) (
        increase(keylag_proxysql_digest_time_seconds_total{EXPORTER}[SHOWN]))"""
    return f"""sum by (digest) (
        increase(keylag_proxysql_digest_{counter}{{EXPORTER}}[SHOWN]))
        * on (digest) group_right ()
        max by (digest, statement) (keylag_proxysql_digest_info{{EXPORTER}})
        and on (digest) topk(15, {time})"""


QUERIES: Final[Mapping[str, str]] = {
    "client": f"{_CLIENT} / ({_CALLS} > 0)",
    "server": f"{_SERVER} / ({_ALL_CALLS} > 0)",
    "outside_per_statement": f"""{_CLIENT} / ({_STATEMENTS} > 0)
        - {_SERVER} / ({_ALL_STATEMENTS} > 0)""",
    "round_trips": """sum by (http_request_method) (
        rate(keystone_request_sql_statements_total{TOKENS}[RATE]))
        / (sum by (http_request_method) (
        rate(http_server_request_duration_seconds_count{TOKENS}[RATE])) > 0)""",
    "operation_client": _per_call("""increase(
        keystone_request_phase_time_seconds_total{TOKENS, keystone_phase="sql"}[SHOWN])
    """),
    "operation_server": _per_call(_token_log_increase("sum"), "TOKENS_OF_ALL"),
    "operation_logged": _per_call(_token_log_increase("count"), "TOKENS_OF_ALL"),
    "class_sent": f"round({_keystone_increase('statements')})",
    "class_rows": f"round({_keystone_increase('rows')})",
    "class_logged": f"round({_log_increase('statement_duration_seconds_count')})",
    "class_server": _log_increase("statement_duration_seconds_sum"),
    "class_p95": f"""histogram_quantile(0.95, {
        _log_increase("statement_duration_seconds_bucket", "table_class, le")
    })""",
    "pool_wait": f"""sum(rate(keystone_request_phase_time_seconds_total{{
        TOKENS, keystone_phase="sql_pool"}}[RATE])) / ({_CALLS} > 0)""",
    "checkouts": "sum(rate(keystone_sql_pool_checkouts_total{KEYSTONE}[RATE]))",
    "connects": "sum(rate(keystone_sql_connects_total{KEYSTONE}[RATE]))",
    "waits": f"""sum(rate(keystone_sql_pool_waits_total{{KEYSTONE}}[RATE]))
        or on () 0 * sum({REPORTING})""",
    "errors": or_zero(
        """sum by (keystone_sql_table_class, error_type) (
        rate(keystone_sql_errors_total{KEYSTONE}[RATE]))""",
        "error_type",
        "no errors",
        REPORTING,
    ),
    "retries": f"""sum(rate(keystone_sql_retries_total{{KEYSTONE}}[RATE]))
        or on () 0 * sum({REPORTING})""",
    "top_time": _top("query_time_seconds_total"),
    "top_calls": f"round({_top('calls_total')})",
    "top_examined": f"round({_top('rows_examined_total')})",
    "top_sent": f"round({_top('rows_sent_total')})",
    "examined": f"""{_log_rate("rows_examined_total")}
        / ({_log_rate("rows_sent_total")} > 0
        or {_log_rate("statement_duration_seconds_count")} > 0)""",
    **{name: _active(counter) for name, counter in RARE.items()},
    "log_behind": "keylag_slow_log_behind_bytes{EXPORTER}",
    "proxy_calls": """sum by (hostgroup) (
        rate(keylag_proxysql_calls_total{EXPORTER}[RATE]))""",
    "proxy_p95": """histogram_quantile(0.95, sum by (command, le) (rate(
        keylag_proxysql_command_duration_seconds_bucket{EXPORTER}[RATE])))""",
    "proxy_hits": """
        sum(rate(keylag_proxysql_query_cache_hits_total{EXPORTER}[RATE]))
        / (sum(rate(keylag_proxysql_query_cache_lookups_total{EXPORTER}[RATE])) > 0)""",
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
    "digest_calls": f"round({_digest('calls_total')})",
    "digest_rows": f"round({_digest('rows_sent_total')})",
    "multiplexing": """
        sum(rate(keylag_proxysql_calls_total{
            EXPORTER, hostgroup!="cache"}[RATE]))
        / sum(keylag_proxysql_pool_used_connections{EXPORTER}
            + keylag_proxysql_pool_free_connections{EXPORTER})""",
}
