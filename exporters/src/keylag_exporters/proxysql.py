"""The proxysql source: what only the admin port knows.

Read are tables of statistics alone, which the account of `admin-stats_credentials`
may read. Their names go without a schema, since that account has none but the one that
they are in; for an administrator it is called `stats`. The `_reset` tables are never
read: reading one empties what it shows. Times there are microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keylag_exporters import mysql
from keylag_exporters.families import Families
from keylag_exporters.model import Declared, Kind, Option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pymysql.cursors import Cursor

MICRO = 1e-6
CACHE_HOSTGROUPS = {-1, 9223372036854775807}
"""What stands for the query cache; the second one in 2.0.x."""

MAX_TEXT = 500

# Client addresses and users are summed over: with mysql-query_digests_track_hostname
# there would be a series for each client.
DIGESTS = """
SELECT hostgroup, schemaname, digest, MIN(digest_text), SUM(count_star),
       SUM(sum_time), SUM(sum_rows_affected), SUM(sum_rows_sent)
  FROM stats_mysql_query_digest
 GROUP BY hostgroup, schemaname, digest
 ORDER BY SUM(sum_time) DESC, SUM(count_star) DESC LIMIT {top:d}
"""
ALL_DIGESTS = """
SELECT hostgroup, SUM(count_star), SUM(sum_time), COUNT(*)
  FROM stats_mysql_query_digest GROUP BY hostgroup
"""
RULES = "SELECT rule_id, hits FROM stats_mysql_query_rules"
GLOBAL = "SELECT Variable_Name, Variable_Value FROM stats_mysql_global"
POOL = """
SELECT hostgroup, srv_host, srv_port, status, ConnUsed, ConnFree, MaxConnUsed
  FROM stats_mysql_connection_pool
"""

# (upper bound in seconds, column); the columns count each range by itself
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
COMMANDS = (
    "SELECT Command, Total_Time_us, Total_cnt, "  # noqa: S608 -- constants alone
    + ", ".join(column for _, column in COMMAND_BUCKETS)
    + " FROM stats_mysql_commands_counters WHERE Total_cnt > 0"
)

# Each row names the variable, the family, and the label if there is one.
_GLOBALS = (
    ("ConnPool_get_conn_immediate", "pool_requests_total", "immediate"),
    ("ConnPool_get_conn_success", "pool_requests_total", "success"),
    ("ConnPool_get_conn_failure", "pool_requests_total", "failure"),
    ("max_connect_timeouts", "pool_timeouts_total", None),
    ("Server_Connections_delayed", "pool_delayed_connections_total", None),
    ("Query_Cache_count_GET", "query_cache_lookups_total", None),
    ("Query_Cache_count_GET_OK", "query_cache_hits_total", None),
)

_DIGEST = ("digest", "hostgroup", "schema", "answered_by")
_SERVER = ("hostgroup", "server", "status")
METRICS = (
    Declared(
        "keylag_proxysql_digest_calls_total",
        "counter",
        "Statements by digest. `cache` is certain; `backend` also holds what the proxy"
        " answered by itself and cache hits within write transactions.",
        _DIGEST,
    ),
    Declared(
        "keylag_proxysql_digest_time_seconds_total",
        "counter",
        "Time by digest, waiting for a backend connection included; 0 from the cache.",
        _DIGEST,
    ),
    Declared(
        "keylag_proxysql_digest_rows_sent_total",
        "counter",
        "Rows sent by digest; 0 from the cache.",
        _DIGEST,
    ),
    Declared(
        "keylag_proxysql_digest_rows_affected_total",
        "counter",
        "Rows changed by digest.",
        _DIGEST,
    ),
    Declared(
        "keylag_proxysql_digest_info",
        "gauge",
        "Always 1: the text of each digest.",
        ("digest", "digest_text"),
    ),
    Declared(
        "keylag_proxysql_calls_total",
        "counter",
        "Statements of all digests, by hostgroup (`cache` is the query cache).",
        ("hostgroup",),
    ),
    Declared(
        "keylag_proxysql_time_seconds_total",
        "counter",
        "Time of all digests, by hostgroup.",
        ("hostgroup",),
    ),
    Declared("keylag_proxysql_digests", "gauge", "Rows in the digest table."),
    Declared(
        "keylag_proxysql_command_duration_seconds",
        "histogram",
        "Time per statement, by command.",
        ("command",),
    ),
    Declared(
        "keylag_proxysql_query_rule_hits_total",
        "counter",
        "Times a query rule matched.",
        ("rule_id",),
    ),
    Declared(
        "keylag_proxysql_query_cache_lookups_total",
        "counter",
        "Look-ups in the query cache.",
    ),
    Declared(
        "keylag_proxysql_query_cache_hits_total",
        "counter",
        "Answers from the query cache, those inside transactions included.",
    ),
    Declared(
        "keylag_proxysql_pool_requests_total",
        "counter",
        "Requests for a backend connection, by outcome.",
        ("outcome",),
    ),
    Declared(
        "keylag_proxysql_pool_timeouts_total",
        "counter",
        "Statements that waited for a backend connection in vain.",
    ),
    Declared(
        "keylag_proxysql_pool_delayed_connections_total",
        "counter",
        "New backend connections put off by the connection throttle.",
    ),
    Declared(
        "keylag_proxysql_pool_used_connections",
        "gauge",
        "Backend connections in use.",
        _SERVER,
    ),
    Declared(
        "keylag_proxysql_pool_free_connections",
        "gauge",
        "Backend connections ready for use.",
        _SERVER,
    ),
    Declared(
        "keylag_proxysql_pool_used_connections_max",
        "gauge",
        "Most backend connections ever in use at once.",
        _SERVER,
    ),
)


class ProxySQL:
    """Reads the admin port, by a connection of its own for each reading."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._top = settings["top"]
        self._connector = mysql.Connector(settings)

    def collect(self) -> Families:
        """Return the families of this moment, or raise."""
        families = Families(METRICS)
        with self._connector.cursor() as cursor:
            _add_digests(families, cursor, self._top)
            _add_totals(families, cursor)
            _add_commands(families, cursor)
            for rule, hits in _rows(cursor, RULES):
                name = "keylag_proxysql_query_rule_hits_total"
                families.add(name, float(hits), str(rule))
            _add_globals(families, dict(_rows(cursor, GLOBAL)))
            _add_pool(families, cursor)
        return families

    def close(self) -> None:
        """Do nothing: no connection outlives a reading."""


def _rows(cursor: Cursor, query: str) -> tuple[tuple[Any, ...], ...]:
    """Return all rows of a query; the admin port sends every value as text."""
    cursor.execute(query)
    return tuple(cursor.fetchall())


def hostgroup(raw: Any) -> str:
    """Return a hostgroup as a label."""
    return "cache" if int(raw) in CACHE_HOSTGROUPS else str(int(raw))


def _add_digests(families: Families, cursor: Cursor, top: int) -> None:
    """Add the digests that took most time."""
    for row in _rows(cursor, DIGESTS.format(top=top)):
        group, schema, digest, text, *sums = row
        calls, time, affected, sent = map(int, sums)
        group = hostgroup(group)
        answered_by = "cache" if group == "cache" else "backend"
        labels = (digest, group, schema, answered_by)
        values = {
            "calls": calls,
            "time_seconds": time * MICRO,
            "rows_affected": affected,
            "rows_sent": sent,
        }
        for name, value in values.items():
            families.add(f"keylag_proxysql_digest_{name}_total", value, *labels)
        info = (digest, text[:MAX_TEXT])
        families.add_once("keylag_proxysql_digest_info", 1, *info)


def _add_totals(families: Families, cursor: Cursor) -> None:
    """Add the sums over all digests, so that a share can be told."""
    digests = 0
    for group, calls, time, rows in _rows(cursor, ALL_DIGESTS):
        name = hostgroup(group)
        families.add("keylag_proxysql_calls_total", int(calls), name)
        families.add("keylag_proxysql_time_seconds_total", int(time) * MICRO, name)
        digests += int(rows)
    families.add("keylag_proxysql_digests", digests)


def _add_commands(families: Families, cursor: Cursor) -> None:
    """Add the latency histogram of each command."""
    uppers = [upper for upper, _ in COMMAND_BUCKETS]
    for command, time, count, *ranges in _rows(cursor, COMMANDS):
        cumulative, so_far = [], 0
        for calls in ranges:
            so_far += int(calls)
            cumulative.append(so_far)
        families.add_histogram(
            "keylag_proxysql_command_duration_seconds",
            uppers,
            cumulative,
            (int(count), int(time) * MICRO),
            command,
        )


def _add_globals(families: Families, variables: dict[str, str]) -> None:
    """Add the counters of the pool and the query cache."""
    for variable, name, label in _GLOBALS:
        if variable in variables:
            labels = () if label is None else (label,)
            value = float(variables[variable])
            families.add(f"keylag_proxysql_{name}", value, *labels)


def _add_pool(families: Families, cursor: Cursor) -> None:
    """Add the connections of each backend."""
    for group, host, port, status, used, free, most in _rows(cursor, POOL):
        labels = (hostgroup(group), f"{host}:{port}", status)
        families.add("keylag_proxysql_pool_used_connections", int(used), *labels)
        families.add("keylag_proxysql_pool_free_connections", int(free), *labels)
        families.add("keylag_proxysql_pool_used_connections_max", int(most), *labels)


KIND = Kind(
    name="proxysql",
    help="Read ProxySQL's admin port: digests, cache answers, rules, pool waits.",
    options=(
        *mysql.options(6032, "stats"),
        Option("top", "Digests that get series of their own.", int, 100),
    ),
    metrics=METRICS,
    open=ProxySQL,
    port=9722,
    interval=5.0,
)
