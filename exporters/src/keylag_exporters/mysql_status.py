"""The mysql source: status and variables under the names of the official exporter.

The server's own counters tell a slow disk, locks, a full connection table and a slow
Galera node apart. mysqld_exporter has all counters; this source has those.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pymysql

from keylag_exporters import mysql
from keylag_exporters.families import Families
from keylag_exporters.metric import Metric
from keylag_exporters.model import SourceType, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pymysql.cursors import Cursor

ACCESS_DENIED = 1227
"""The account lacks a privilege for this statement."""

# (status variable, help); the names of the metrics are in lower case
STATUS = (
    ("Uptime", "Age of the server, in seconds."),
    ("Threads_running", "Connections whose statement runs now."),
    ("Threads_connected", "Connections open now."),
    ("Max_used_connections", "Most connections open at once."),
    ("Connections", "Connections attempted."),
    ("Aborted_connects", "Connections that failed."),
    ("Queries", "Statements, including those of stored programs."),
    ("Slow_queries", "Statements slower than long_query_time."),
    ("Created_tmp_disk_tables", "Temporary tables on disk."),
    ("Table_locks_waited", "Table locks that had to wait."),
    ("Innodb_row_lock_time", "Time of waits for row locks, in milliseconds."),
    ("Innodb_row_lock_waits", "Waits for row locks."),
    ("Innodb_row_lock_current_waits", "Row locks waited for now."),
    ("Innodb_data_fsyncs", "Calls of fsync for data files."),
    (
        "Innodb_os_log_fsyncs",
        "Calls of fsync for the redo log; MariaDB 10.11 has no such counter.",
    ),
    ("Innodb_data_pending_fsyncs", "Calls of fsync that run now."),
    ("Innodb_buffer_pool_reads", "Reads that missed the buffer pool."),
    ("Innodb_buffer_pool_read_requests", "Reads from the buffer pool."),
    ("Innodb_buffer_pool_wait_free", "Waits for a free page of the buffer pool."),
    ("wsrep_cluster_size", "Nodes in the Galera cluster."),
    (
        "wsrep_cluster_status",
        "Whether this node belongs to the part of the cluster that serves.",
    ),
    ("wsrep_local_state", "State of this node; 4 is synced."),
    ("wsrep_ready", "Whether this node accepts statements."),
    ("wsrep_connected", "Whether this node is connected to its cluster."),
    (
        "wsrep_flow_control_paused",
        "Share of the time since FLUSH STATUS for which flow control stopped writes.",
    ),
    (
        "wsrep_flow_control_paused_ns",
        "Time for which flow control stopped writes, in nanoseconds.",
    ),
    ("wsrep_flow_control_sent", "Pauses that this node asked for."),
    ("wsrep_flow_control_recv", "Pauses that any node asked for."),
    ("wsrep_causal_reads", "Statements that waited for the cluster."),
    ("wsrep_local_recv_queue", "Write sets that wait to be applied."),
    ("wsrep_local_send_queue", "Write sets that wait to be sent."),
    ("wsrep_last_committed", "Number of the last transaction of the cluster."),
    ("wsrep_replicated_bytes", "Bytes of write sets of this node."),
    ("wsrep_received_bytes", "Bytes of write sets of other nodes."),
    ("wsrep_cert_deps_distance", "Mean number of write sets that can run in parallel."),
    ("wsrep_local_cert_failures", "Transactions that failed certification."),
    ("wsrep_local_bf_aborts", "Transactions that a replicated write set aborted."),
)
# (system variable, help)
VARIABLES = (
    ("max_connections", "Most connections at once."),
    ("skip_name_resolve", "Whether the server looks up no names of clients."),
    ("innodb_flush_log_at_trx_commit", "1 if each commit waits for the disk."),
    ("sync_binlog", "Commits for each fsync of the binary log; 0 for none."),
    ("innodb_buffer_pool_size", "Size of the buffer pool, in bytes."),
    ("wsrep_sync_wait", "Statements that wait for the cluster, as a bit mask."),
)
TRANSACTION_STATES = ("RUNNING", "LOCK WAIT", "ROLLING BACK", "COMMITTING")
TRANSACTIONS_QUERY = """
SELECT trx_state, COUNT(*), MAX(TIMESTAMPDIFF(SECOND, trx_started, NOW()))
  FROM information_schema.innodb_trx GROUP BY trx_state
"""
_WORDS = {
    "on": 1.0,
    "yes": 1.0,
    "off": 0.0,
    "no": 0.0,
    "primary": 1.0,
    "non-primary": 0.0,
    "disconnected": 0.0,
}
LATENCY = "wsrep_evs_repl_latency"
"""A status variable with five numbers: those of LATENCY_METRICS, with slashes."""
LATENCY_METRICS = (
    ("min_seconds", "Shortest time of a message to all nodes, of the last ones."),
    ("avg_seconds", "Mean time of a message to all nodes, of the last ones."),
    ("max_seconds", "Longest time of a message to all nodes, of the last ones."),
    ("stdev", "Standard deviation of these times, in seconds."),
    ("sample_size", "Number of these messages; 0 if this node sent none."),
)

METRICS = (
    Metric("mysql_up", "gauge", "Whether the server answered."),
    *(
        Metric(f"mysql_global_status_{name.lower()}", "gauge", text)
        for name, text in STATUS
    ),
    *(
        Metric(f"mysql_global_variables_{name}", "gauge", text)
        for name, text in VARIABLES
    ),
    *(
        Metric(f"mysql_galera_evs_repl_latency_{name}", "gauge", text)
        for name, text in LATENCY_METRICS
    ),
    Metric(
        "mysql_info_schema_innodb_trx_transactions",
        "gauge",
        "Open transactions by state; absent without the privilege PROCESS.",
        ("state",),
    ),
    Metric(
        "mysql_info_schema_innodb_trx_oldest_transaction_seconds",
        "gauge",
        "Age of the oldest open transaction, by state; 0 without one.",
        ("state",),
    ),
)


class MysqlSource:
    """Reads the status of one server."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._connector = mysql.Connector(settings)

    def collect(self) -> Families:
        """Return all families.

        Raises UnreachableError with `mysql_up` 0 if the server is unreachable, and
        pymysql.MySQLError for any other failure.
        """
        families = Families(METRICS)
        try:
            with self._connector.cursor() as cursor:
                _add_numbers(families, cursor, "STATUS", STATUS)
                _add_numbers(families, cursor, "VARIABLES", VARIABLES)
                _add_latency(families, cursor)
                _add_transactions(families, cursor)
        except UnreachableError as error:
            down = Families(METRICS)
            down.add("mysql_up", 0)
            raise UnreachableError(str(error), down) from error
        families.add("mysql_up", 1)
        return families

    def close(self) -> None:
        """Do nothing: each read has its own connection."""


def _add_numbers(
    families: Families, cursor: Cursor, kind: str, rows: tuple[tuple[str, str], ...]
) -> None:
    """Add the rows that the server has; releases and Galera differ."""
    names = [name for name, _ in rows]
    cursor.execute(f"SHOW GLOBAL {kind} WHERE Variable_name IN %s", (names,))
    for name, value in _parse_rows(cursor.fetchall()):
        families.add(f"mysql_global_{kind.lower()}_{name}", value)


def _add_latency(families: Families, cursor: Cursor) -> None:
    """Add the time of messages between the nodes, if the server has Galera."""
    cursor.execute("SHOW GLOBAL STATUS LIKE %s", (LATENCY,))
    for _, text in cursor.fetchall():
        with suppress(ValueError):
            numbers = [float(one) for one in text.split("/")]
            for (name, _), value in zip(LATENCY_METRICS, numbers, strict=True):
                families.add(f"mysql_galera_evs_repl_latency_{name}", value)


def _parse_rows(rows: tuple[tuple[Any, ...], ...]) -> Iterator[tuple[str, float]]:
    """Yield names in lower case, and numbers; skip text, as the official exporter."""
    for name, value in rows:
        with suppress(ValueError):
            number = _WORDS.get(value.lower())
            yield name.lower(), float(value) if number is None else number


def _add_transactions(families: Families, cursor: Cursor) -> None:
    """Add open transactions, if the account may see those of others."""
    try:
        cursor.execute(TRANSACTIONS_QUERY)
    except pymysql.MySQLError as error:
        if error.args[0] != ACCESS_DENIED:
            raise
        return
    found = {state: (count, age) for state, count, age in cursor.fetchall()}
    prefix = "mysql_info_schema_innodb_trx"
    for state in TRANSACTION_STATES:
        count, age = found.get(state, (0, 0))
        families.add(f"{prefix}_transactions", int(count), state)
        families.add(f"{prefix}_oldest_transaction_seconds", float(age or 0), state)


SOURCE_TYPE = SourceType(
    name="mysql",
    help="Read the status of MySQL or MariaDB, with Galera's."
    " Metric names are those of the official mysqld_exporter.",
    options=mysql.connection_options(3306, "keylag"),
    metrics=METRICS,
    create=MysqlSource,
    port=9104,
    interval=5.0,
)
