"""Dashboard *SQL*: statement times in Keystone, the database and ProxySQL."""

from typing import Final

from keylag_dashboards.config import WARNING
from keylag_dashboards.model import Board, Column, Panel, Row
from keylag_dashboards.queries.sql import QUERIES

_NO_PROXY: Final = "there is no ProxySQL"

BOTH_SIDES: Final = Row(
    "SQL time of token calls, in Keystone and in the database",
    (
        Panel(
            "Time in SQL per call",
            "In Keystone and in the database. Round trips and the driver are the rest."
            " The database's time needs KEYLAG_SQL_COMMENT=true in Keystone.",
            "s",
            "lines",
            {"client (Keystone)": "client", "server (database)": "server"},
            width=8,
            explained_by=(
                "sql: Outside the database",
                "sql: Statements with the most time",
                "galera: Message to all nodes",
            ),
        ),
        Panel(
            "Outside the database",
            "Per statement: network, proxy and driver. Above 1 ms, check where they"
            " run. It needs KEYLAG_SQL_COMMENT=true in Keystone.",
            "s",
            "lines",
            {"outside": "outside_per_statement"},
            width=8,
            thresholds={0.001: WARNING},
            explained_by=("sql: Time by command, p95", "sql: Pool"),
        ),
        Panel(
            "Round trips per call",
            "Fewer statements save more time than faster ones.",
            "short",
            "lines",
            {"{{http_request_method}}": "round_trips"},
            width=8,
            decimals=1,
            explained_by=("sql: Statements by table class", "cache: Hits by layer"),
        ),
        Panel(
            "Time of an operation",
            "SQL time per token call, by its step. The database columns need"
            " KEYLAG_SQL_COMMENT=true in Keystone.",
            "s",
            "table",
            {
                "client": "operation_client",
                "server": "operation_server",
                "statements": "operation_logged",
            },
            width=10,
            height=8,
            columns={
                "operation": Column(),
                "client": Column("s", 80),
                "server": Column("s", 75),
                "statements": Column("short", 95, 1),
            },
        ),
        Panel(
            "Statements by table class",
            "By group of tables: time in the database, statements that Keystone sent,"
            " rows that it got, statements that the slow log has, and the p95 of one.",
            "short",
            "table",
            {
                "database": "class_server",
                "sent": "class_sent",
                "rows": "class_rows",
                "logged": "class_logged",
                "p95": "class_p95",
            },
            width=14,
            height=8,
            columns={
                "tables": Column(),
                "sent": Column("locale", 70, 0),
                "rows": Column("locale", 70, 0),
                "logged": Column("locale", 70, 0),
                "database": Column("s", 100),
                "p95": Column("s", 80),
            },
        ),
    ),
)

POOL: Final = Row(
    "Keystone's connection pool",
    (
        Panel(
            "Wait for a connection",
            "Per call. Above 1 ms: the pool is too small, or connecting is slow.",
            "s",
            "lines",
            {"waiting": "pool_wait"},
            width=8,
            thresholds={0.001: WARNING},
            explained_by=("sql: Pool",),
        ),
        Panel(
            "Pool",
            "Waits: the pool was empty. As many connects as check-outs: the pool"
            " keeps no connections.",
            "ops",
            "lines",
            {"check-outs": "checkouts", "connects": "connects", "waits": "waits"},
            width=8,
            explained_by=("sql: Time in SQL per call",),
        ),
        Panel(
            "Errors and retries",
            "oslo.db retries deadlocks and lost connections.",
            "ops",
            "lines",
            {
                "{{keystone_sql_table_class}} {{error_type}}": "errors",
                "retried": "retries",
            },
            width=8,
            explained_by=("sql: Waiting for locks",),
        ),
    ),
)

DATABASE: Final = Row(
    "Inside the database, from its slow log",
    (
        Panel(
            "Statements with the most time",
            "With the rows that they examined and sent. Many examined per row sent: an"
            " index is missing.",
            "short",
            "table",
            {
                "time": "top_time",
                "calls": "top_calls",
                "examined": "top_examined",
                "sent": "top_sent",
            },
            width=24,
            height=9,
            columns={
                "id": Column(width=180),
                "statement": Column(),
                "time": Column("s", 80),
                "calls": Column("locale", 85, 0),
                "examined": Column("locale", 90, 0),
                "sent": Column("locale", 70, 0),
            },
            explained_by=("sql: Rows examined per row sent",),
        ),
        Panel(
            "Rows examined per row sent",
            "Near 1: a suitable index. Hundreds: a scan.",
            "short",
            "lines",
            {"{{table_class}}": "examined"},
            decimals=1,
            explained_by=("sql: Full scans", "sql: Statements with the most time"),
        ),
        Panel(
            "Waiting for locks",
            "Lock waits in seconds per second. Some microseconds per statement are"
            " usual. A multiple of that: writers delay other statements.",
            "s",
            "lines",
            {"{{table_class}}": "lock_time"},
            explained_by=("sql: Statements with the most time",),
        ),
        Panel(
            "Full scans",
            "Harmless on tables of ten rows. On others an index is missing.",
            "ops",
            "lines",
            {"{{table_class}}": "full_scans"},
            width=8,
            explained_by=("sql: Statements with the most time",),
        ),
        Panel(
            "Temporary tables",
            "Sorting and grouping without an index.",
            "ops",
            "lines",
            {"{{table_class}}": "temporary"},
            width=8,
        ),
        Panel(
            "Unread slow log",
            "A growing backlog: the exporter is too slow, and this row shows old data.",
            "bytes",
            "lines",
            {"{{instance}}": "log_behind"},
            width=8,
        ),
    ),
    source="slow-log",
)

PROXY: Final = Row(
    "ProxySQL",
    (
        Panel(
            "Statements by hostgroup",
            "Reads in the writer's hostgroup: a query rule does not match.",
            "ops",
            "lines",
            {"{{hostgroup}}": "proxy_calls"},
            width=8,
            empty_reason=_NO_PROXY,
        ),
        Panel(
            "Query cache hits",
            "Near zero: the rules cache statements that do not repeat.",
            "percentunit",
            "lines",
            {"hits": "proxy_hits"},
            width=8,
            maximum=1,
            empty_reason=f"{_NO_PROXY}, or no rule of it that caches",
        ),
        Panel(
            "Time by command, p95",
            "Includes waits for a backend connection.",
            "s",
            "lines",
            {"{{command}}": "proxy_p95"},
            width=8,
            explained_by=("sql: Backend requests",),
            empty_reason=_NO_PROXY,
        ),
        Panel(
            "Digests with the most time",
            "The statements with the most time, measured by ProxySQL.",
            "short",
            "table",
            {
                "time": "digest_time",
                "calls": "digest_calls",
                "sent": "digest_rows",
            },
            width=24,
            height=9,
            columns={
                "digest": Column(width=180),
                "statement": Column(),
                "time": Column("s", 80),
                "calls": Column("locale", 85, 0),
                "sent": Column("locale", 70, 0),
            },
            empty_reason=_NO_PROXY,
        ),
        Panel(
            "Backend connections",
            "None free while statements wait: find the sessions that hold them.",
            "short",
            "lines",
            {
                "{{hostgroup}} {{server}} used": "proxy_used",
                "{{hostgroup}} {{server}} free": "proxy_free",
            },
            width=8,
            empty_reason=_NO_PROXY,
        ),
        Panel(
            "Backend requests",
            "Requests for a connection. Failures and timeouts are errors in Keystone.",
            "ops",
            "lines",
            {
                "{{outcome}}": "proxy_pool",
                "timed out": "proxy_timeouts",
                "delayed": "proxy_delayed",
            },
            width=8,
            empty_reason=_NO_PROXY,
        ),
        Panel(
            "Multiplexing",
            "Statements per second and backend connection. It falls when sessions"
            " keep connections to themselves.",
            "ops",
            "lines",
            {"statements": "multiplexing"},
            width=8,
            empty_reason=_NO_PROXY,
        ),
    ),
    source="proxysql",
    collapsed=True,
)

BOARD: Final = Board(
    name="sql",
    title="Keylag / SQL",
    purpose="SQL time, measured in Keystone, in the database and in ProxySQL.",
    queries=QUERIES,
    variables=("cluster", "region", "job", "host", "method", "exporter"),
    rows=(BOTH_SIDES, POOL, DATABASE, PROXY),
)
