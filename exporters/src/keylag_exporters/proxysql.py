"""The proxysql source: statistics that only the admin port has.

It reads tables of statistics, for which the account of `admin-stats_credentials` is
enough. Table names have no schema, because this account sees them in its default
schema, while administrators see them in `stats`. It never reads `_reset` tables: a read
empties them. Times in the tables are microseconds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from keylag_exporters import mysql
from keylag_exporters.families import Families
from keylag_exporters.metric import Metric
from keylag_exporters.model import Option, SourceType
from keylag_exporters.readable_sql.statement import MAX_READABLE, readable_statement
from keylag_exporters.settings import parse_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pymysql.cursors import Cursor

MICROSECOND = 1e-6
CACHE_HOSTGROUPS = {-1, 9223372036854775807}
"""Hostgroup numbers of the query cache; the second one is that of 2.0.x."""

MAX_DIGEST_TEXT = 500
CACHED_DIGEST_TEXTS = 1000

# Sums over client addresses and users: mysql-query_digests_track_hostname would
# otherwise add a series per client.
TOP_DIGESTS_QUERY = """
SELECT hostgroup, schemaname, digest, MIN(digest_text), SUM(count_star),
       SUM(sum_time), SUM(sum_rows_affected), SUM(sum_rows_sent)
  FROM stats_mysql_query_digest
 GROUP BY hostgroup, schemaname, digest
 ORDER BY SUM(sum_time) DESC, SUM(count_star) DESC LIMIT {top:d}
"""
DIGEST_TOTALS_QUERY = """
SELECT hostgroup, SUM(count_star), SUM(sum_time), COUNT(*)
  FROM stats_mysql_query_digest GROUP BY hostgroup
"""
RULE_HITS_QUERY = "SELECT rule_id, hits FROM stats_mysql_query_rules"
GLOBAL_STATUS_QUERY = "SELECT Variable_Name, Variable_Value FROM stats_mysql_global"
POOL_QUERY = """
SELECT hostgroup, srv_host, srv_port, status, ConnUsed, ConnFree, MaxConnUsed
  FROM stats_mysql_connection_pool
"""

# (upper bound in seconds, column); the columns are not cumulative
COMMAND_BUCKETS = (
    (0.0001, "cnt_100us"),
    (0.0005, "cnt_500us"),
    (0.001, "cnt_1ms"),
    (0.005, "cnt_5ms"),
    (0.01, "cnt_10ms"),
    (0.05, "cnt_50ms"),
    (0.1, "cnt_100ms"),
    (0.5, "cnt_500ms"),
    (1.0, "cnt_1s"),
    (5.0, "cnt_5s"),
    (10.0, "cnt_10s"),
)
COMMANDS_QUERY = (
    "SELECT Command, Total_Time_us, Total_cnt, "  # noqa: S608 -- only constants
    + ", ".join(column for _, column in COMMAND_BUCKETS)
    + " FROM stats_mysql_commands_counters WHERE Total_cnt > 0"
)

# (status variable, metric without `keylag_proxysql_`, label or None)
_STATUS_METRICS = (
    ("ConnPool_get_conn_immediate", "pool_requests_total", "immediate"),
    ("ConnPool_get_conn_success", "pool_requests_total", "success"),
    ("ConnPool_get_conn_failure", "pool_requests_total", "failure"),
    ("max_connect_timeouts", "pool_timeouts_total", None),
    ("Server_Connections_delayed", "pool_delayed_connections_total", None),
    ("Query_Cache_count_GET", "query_cache_lookups_total", None),
    ("Query_Cache_count_GET_OK", "query_cache_hits_total", None),
)

_DIGEST_LABELS = ("digest", "hostgroup", "schema", "answered_by")
_SERVER_LABELS = ("hostgroup", "server", "status")
METRICS = (
    Metric(
        "keylag_proxysql_digest_calls_total",
        "counter",
        "Statements by digest. `backend` includes statements that ProxySQL answered"
        " itself and cache hits within write transactions.",
        _DIGEST_LABELS,
    ),
    Metric(
        "keylag_proxysql_digest_time_seconds_total",
        "counter",
        "Time by digest, including waits for a backend connection; 0 from the cache.",
        _DIGEST_LABELS,
    ),
    Metric(
        "keylag_proxysql_digest_rows_sent_total",
        "counter",
        "Rows sent by digest; 0 from the cache.",
        _DIGEST_LABELS,
    ),
    Metric(
        "keylag_proxysql_digest_rows_affected_total",
        "counter",
        "Rows changed by digest.",
        _DIGEST_LABELS,
    ),
    Metric(
        "keylag_proxysql_digest_info",
        "gauge",
        "Always 1: each digest as a readable statement, and its text.",
        ("digest", "statement", "digest_text"),
    ),
    Metric(
        "keylag_proxysql_calls_total",
        "counter",
        "Statements of all digests, by hostgroup (`cache` is the query cache).",
        ("hostgroup",),
    ),
    Metric(
        "keylag_proxysql_time_seconds_total",
        "counter",
        "Time of all digests, by hostgroup.",
        ("hostgroup",),
    ),
    Metric("keylag_proxysql_digests", "gauge", "Rows in the digest table."),
    Metric(
        "keylag_proxysql_command_duration_seconds",
        "histogram",
        "Time per statement, by command.",
        ("command",),
    ),
    Metric(
        "keylag_proxysql_query_rule_hits_total",
        "counter",
        "Times a query rule matched.",
        ("rule_id",),
    ),
    Metric(
        "keylag_proxysql_query_cache_lookups_total",
        "counter",
        "Look-ups in the query cache.",
    ),
    Metric(
        "keylag_proxysql_query_cache_hits_total",
        "counter",
        "Query cache hits, including those within transactions.",
    ),
    Metric(
        "keylag_proxysql_pool_requests_total",
        "counter",
        "Requests for a backend connection, by outcome.",
        ("outcome",),
    ),
    Metric(
        "keylag_proxysql_pool_timeouts_total",
        "counter",
        "Statements that timed out waiting for a backend connection.",
    ),
    Metric(
        "keylag_proxysql_pool_delayed_connections_total",
        "counter",
        "New backend connections delayed by throttling.",
    ),
    Metric(
        "keylag_proxysql_pool_used_connections",
        "gauge",
        "Backend connections in use.",
        _SERVER_LABELS,
    ),
    Metric(
        "keylag_proxysql_pool_free_connections",
        "gauge",
        "Idle backend connections.",
        _SERVER_LABELS,
    ),
    Metric(
        "keylag_proxysql_pool_used_connections_max",
        "gauge",
        "Maximum of backend connections in use at once.",
        _SERVER_LABELS,
    ),
)


class ProxySQLSource:
    """Reads the admin port, with a connection for each read."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._top = settings["top"]
        self._connector = mysql.Connector(settings)

    def collect(self) -> Families:
        """Return all families; raises UnreachableError or pymysql.MySQLError."""
        families = Families(METRICS)
        with self._connector.cursor() as cursor:
            _add_digests(families, cursor, self._top)
            _add_digest_totals(families, cursor)
            _add_commands(families, cursor)
            for rule, hits in _fetch_rows(cursor, RULE_HITS_QUERY):
                name = "keylag_proxysql_query_rule_hits_total"
                families.add(name, float(hits), str(rule))
            _add_status(families, dict(_fetch_rows(cursor, GLOBAL_STATUS_QUERY)))
            _add_pool(families, cursor)
        return families

    def close(self) -> None:
        """Do nothing: each read has its own connection."""


def _fetch_rows(cursor: Cursor, query: str) -> tuple[tuple[Any, ...], ...]:
    """Return all rows of a query; the admin port sends each value as text."""
    cursor.execute(query)
    return tuple(cursor.fetchall())


def hostgroup_label(raw: Any) -> str:
    """Return a hostgroup as a label: its number, or `cache`."""
    return "cache" if int(raw) in CACHE_HOSTGROUPS else str(int(raw))


def _add_digests(families: Families, cursor: Cursor, top: int) -> None:
    for row in _fetch_rows(cursor, TOP_DIGESTS_QUERY.format(top=top)):
        group, schema, digest, text, *sums = row
        calls, time, affected, sent = map(int, sums)
        group = hostgroup_label(group)
        answered_by = "cache" if group == "cache" else "backend"
        labels = (digest, group, schema, answered_by)
        values = {
            "calls": calls,
            "time_seconds": time * MICROSECOND,
            "rows_affected": affected,
            "rows_sent": sent,
        }
        for name, value in values.items():
            families.add(f"keylag_proxysql_digest_{name}_total", value, *labels)
        info = (digest, _readable(text), text[:MAX_DIGEST_TEXT])
        families.add_once("keylag_proxysql_digest_info", 1, *info)


@lru_cache(CACHED_DIGEST_TEXTS)
def _readable(digest_text: str) -> str:
    """Return the readable form of a digest, which is the same in each read."""
    return readable_statement(digest_text.encode()) or digest_text[:MAX_READABLE]


def _add_digest_totals(families: Families, cursor: Cursor) -> None:
    """Add totals over all digests, from which shares are computed."""
    digests = 0
    for group, calls, time, rows in _fetch_rows(cursor, DIGEST_TOTALS_QUERY):
        name = hostgroup_label(group)
        families.add("keylag_proxysql_calls_total", int(calls), name)
        families.add(
            "keylag_proxysql_time_seconds_total", int(time) * MICROSECOND, name
        )
        digests += int(rows)
    families.add("keylag_proxysql_digests", digests)


def _add_commands(families: Families, cursor: Cursor) -> None:
    uppers = [upper for upper, _ in COMMAND_BUCKETS]
    for command, time, count, *ranges in _fetch_rows(cursor, COMMANDS_QUERY):
        cumulative, running_total = [], 0
        for calls in ranges:
            running_total += int(calls)
            cumulative.append(running_total)
        families.add_histogram(
            "keylag_proxysql_command_duration_seconds",
            uppers,
            cumulative,
            (int(count), int(time) * MICROSECOND),
            command,
        )


def _add_status(families: Families, variables: dict[str, str]) -> None:
    for variable, name, label in _STATUS_METRICS:
        if variable in variables:
            labels = () if label is None else (label,)
            value = float(variables[variable])
            families.add(f"keylag_proxysql_{name}", value, *labels)


def _add_pool(families: Families, cursor: Cursor) -> None:
    for group, host, port, status, used, free, most_used in _fetch_rows(
        cursor, POOL_QUERY
    ):
        labels = (hostgroup_label(group), f"{host}:{port}", status)
        families.add("keylag_proxysql_pool_used_connections", int(used), *labels)
        families.add("keylag_proxysql_pool_free_connections", int(free), *labels)
        families.add(
            "keylag_proxysql_pool_used_connections_max", int(most_used), *labels
        )


SOURCE_TYPE = SourceType(
    name="proxysql",
    help="Read digests, rules and pool waits from ProxySQL.",
    options=(
        *mysql.connection_options(6032, "stats"),
        Option("top", "Number of digests with series of their own.", parse_count, 100),
    ),
    metrics=METRICS,
    create=ProxySQLSource,
    port=9722,
    interval=5.0,
)
