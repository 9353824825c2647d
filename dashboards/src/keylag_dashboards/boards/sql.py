"""Dashboard *SQL*: statement times in Keystone, the database and ProxySQL."""

from typing import Final

from keylag_dashboards.model import Board, Panel, Row
from keylag_dashboards.queries.sql import QUERIES

_NO_PROXY: Final = "there is no ProxySQL"

BOTH_SIDES: Final = Row(
    "Both sides of a token call's SQL",
    (
        Panel(
            "Time per call, client and server",
            "What the client waits beyond the server's time is round trips and driver.",
            "s",
            "lines",
            {"waiting in Keystone": "client", "working in the database": "server"},
            drill_down=("tokens",),
        ),
        Panel(
            "Outside the database, per statement",
            "Network, proxy and driver: above a millisecond, look at where they run.",
            "s",
            "lines",
            {"outside": "outside_per_statement"},
            width=6,
        ),
        Panel(
            "Round trips per call",
            "Fewer statements help more than faster ones.",
            "short",
            "lines",
            {"{{http_request_method}}": "round_trips"},
            width=6,
        ),
        Panel(
            "By operation",
            "Which step of a token call the time is for. The database's columns need"
            " KEYLAG_SQL_COMMENT=true in Keystone.",
            "s",
            "table",
            {
                "waiting, per call": "operation_client",
                "database, per call": "operation_server",
                "statements per call": "operation_logged",
            },
            units={"statements per call": "short"},
        ),
        Panel(
            "By table class",
            "Which tables are asked for most, and which cost the database most.",
            "short",
            "table",
            {
                "sent by Keystone": "class_sent",
                "rows received": "class_rows",
                "logged": "class_logged",
                "database's time": "class_server",
                "p95 of a statement": "class_p95",
            },
            units={"database's time": "s", "p95 of a statement": "s"},
        ),
    ),
)

POOL: Final = Row(
    "Keystone's connections",
    (
        Panel(
            "Waiting for a connection, per call",
            "Anything visible is a pool that is too small, or a slow connect.",
            "s",
            "lines",
            {"sql_pool": "pool_wait"},
            width=8,
        ),
        Panel(
            "Pool",
            "Waits mean that the pool was empty; connects at every check-out, that it"
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
            "Deadlocks and lost connections, which oslo.db tries again.",
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
            "Statements with most time",
            "Many examined rows for each one sent ask for an index.",
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
            "Rows examined for each row sent",
            "Near one is an index that fits; hundreds are scans.",
            "short",
            "lines",
            {"{{table_class}}": "examined"},
        ),
        Panel(
            "Waiting for locks",
            "Seconds per second; above zero, writers stand in the readers' way.",
            "s",
            "lines",
            {"{{table_class}}": "lock_time"},
        ),
        Panel(
            "Full scans",
            "Harmless on tables of ten rows; on others an index is missing.",
            "ops",
            "lines",
            {"{{table_class}}": "full_scans"},
            width=8,
        ),
        Panel(
            "Temporary tables",
            "Sorting and grouping that no index serves.",
            "ops",
            "lines",
            {"{{table_class}}": "temporary"},
            width=8,
        ),
        Panel(
            "Slow log not yet read",
            "Growing: the exporter cannot keep up, and what is shown here is old.",
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
            "Reads that go to the writer's hostgroup are rules that do not match.",
            "ops",
            "lines",
            {"{{hostgroup}}": "proxy_calls"},
            width=8,
            empty_reason=_NO_PROXY,
        ),
        Panel(
            "Query cache hits",
            "Near zero, the rules cache what never comes again.",
            "percentunit",
            "lines",
            {"hits": "proxy_hits"},
            width=8,
            empty_reason=f"{_NO_PROXY}, or no rule of it that caches",
        ),
        Panel(
            "Time by command, p95",
            "Waiting for a backend connection is part of it.",
            "s",
            "lines",
            {"{{command}}": "proxy_p95"},
            width=8,
            empty_reason=_NO_PROXY,
        ),
        Panel(
            "Digests with most time",
            "The proxy's own view of the statements with most time.",
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
            "None free while statements wait: find who holds them.",
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
            "Failures and time-outs are calls that Keystone sees as errors.",
            "ops",
            "lines",
            {
                "{{outcome}}": "proxy_pool",
                "timed out": "proxy_timeouts",
                "put off": "proxy_delayed",
            },
            width=8,
            empty_reason=_NO_PROXY,
        ),
        Panel(
            "Multiplexing: statements per connection",
            "Statements a second for each backend connection; it falls when sessions"
            " hold on to theirs.",
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
    purpose="Statements from both sides: Keystone waits, the database works.",
    queries=QUERIES,
    variables=("job", "instance", "method", "exporter"),
    rows=(BOTH_SIDES, POOL, DATABASE, PROXY),
)
