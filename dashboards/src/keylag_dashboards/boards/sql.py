"""Dashboard *SQL*: statement times in Keystone, the database and ProxySQL."""

from typing import Final

from keylag_dashboards.model import Board, Panel, Row
from keylag_dashboards.queries.sql import QUERIES

_NO_PROXY: Final = "there is no ProxySQL"

BOTH_SIDES: Final = Row(
    "SQL time of token calls, in Keystone and in the database",
    (
        Panel(
            "Time per call, client and server",
            "The difference is round trips and the driver.",
            "s",
            "lines",
            {"client (Keystone)": "client", "server (database)": "server"},
            drill_down=("tokens",),
        ),
        Panel(
            "Outside the database, per statement",
            "Network, proxy and driver. Above 1 ms, check where they run.",
            "s",
            "lines",
            {"outside": "outside_per_statement"},
            width=6,
        ),
        Panel(
            "Round trips per call",
            "Fewer statements save more time than faster ones.",
            "short",
            "lines",
            {"{{http_request_method}}": "round_trips"},
            width=6,
        ),
        Panel(
            "Time by operation",
            "SQL time by step of a token call. The database columns need"
            " KEYLAG_SQL_COMMENT=true in Keystone.",
            "s",
            "table",
            {
                "client, per call": "operation_client",
                "server, per call": "operation_server",
                "statements per call": "operation_logged",
            },
            units={"statements per call": "short"},
        ),
        Panel(
            "Statements by table class",
            "Statements, rows and database time by group of tables.",
            "short",
            "table",
            {
                "sent by Keystone": "class_sent",
                "rows received": "class_rows",
                "logged": "class_logged",
                "database time": "class_server",
                "p95 of a statement": "class_p95",
            },
            units={"database time": "s", "p95 of a statement": "s"},
        ),
    ),
)

POOL: Final = Row(
    "Keystone's connection pool",
    (
        Panel(
            "Waiting for a connection, per call",
            "Above zero: the pool is too small, or connecting is slow.",
            "s",
            "lines",
            {"sql_pool": "pool_wait"},
            width=8,
        ),
        Panel(
            "Pool",
            "Waits: the pool was empty. As many connects as check-outs: the pool"
            " keeps no connections.",
            "ops",
            "lines",
            {"check-outs": "checkouts", "connects": "connects", "waits": "waits"},
            width=8,
            empty_reason="no check-out had to wait",
            empty_legends=("waits",),
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
            empty_reason="no statement failed",
        ),
    ),
)

DATABASE: Final = Row(
    "Inside the database, from its slow log",
    (
        Panel(
            "Statements with the most time",
            "Many rows examined per row sent: an index is missing.",
            "short",
            "table",
            {
                "time": "top_time",
                "calls": "top_calls",
                "rows examined": "top_examined",
                "rows sent": "top_sent",
            },
            width=24,
            units={"time": "s"},
        ),
        Panel(
            "Rows examined per row sent",
            "Near 1: a suitable index. Hundreds: a scan.",
            "short",
            "lines",
            {"{{table_class}}": "examined"},
        ),
        Panel(
            "Waiting for locks",
            "Lock waits in seconds per second. Above zero: writers delay other"
            " statements.",
            "s",
            "lines",
            {"{{table_class}}": "lock_time"},
        ),
        Panel(
            "Full scans",
            "Harmless on tables of ten rows. On others an index is missing.",
            "ops",
            "lines",
            {"{{table_class}}": "full_scans"},
            width=8,
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
            empty_reason=f"{_NO_PROXY}, or no rule of it that caches",
        ),
        Panel(
            "Time by command, p95",
            "Includes waits for a backend connection.",
            "s",
            "lines",
            {"{{command}}": "proxy_p95"},
            width=8,
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
                "rows sent": "digest_rows",
            },
            width=24,
            units={"time": "s"},
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
            "Requests for a backend connection",
            "Failures and timeouts are errors in Keystone.",
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
            "Multiplexing: statements per connection",
            "Statements per second and backend connection. It falls when sessions"
            " keep connections to themselves.",
            "ops",
            "lines",
            {"statements": "multiplexing"},
            width=8,
            empty_reason=_NO_PROXY,
        ),
    ),
)

BOARD: Final = Board(
    name="sql",
    title="Keylag / SQL",
    purpose="SQL time, measured in Keystone, in the database and in ProxySQL.",
    queries=QUERIES,
    variables=("job", "instance", "method", "exporter"),
    rows=(BOTH_SIDES, POOL, DATABASE, PROXY),
)
