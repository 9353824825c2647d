"""What the slow-log source declares; light, for a log that is read just once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keylag_exporters.model import Declared, Kind, Option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from keylag_exporters.model import Source

_CLASS = ("id", "table_class", "route", "operation")
_GROUP = ("table_class", "route", "operation")
_OF_CLASS = "by class (an unchosen class counts as id=other)"

# (metric, field of Totals, factor, help); one row for each counter of a class
COUNTERS = (
    ("calls", "count", 1, "Statements in the slow log"),
    ("query_time_seconds", "query_time_us", 1e-6, "Time in the server"),
    ("lock_time_seconds", "lock_time_us", 1e-6, "Time waiting for locks"),
    ("rows_sent", "rows_sent", 1, "Rows sent to clients"),
    ("rows_examined", "rows_examined", 1, "Rows read by the server"),
    ("errors", "errors", 1, "Statements that failed, where errors are logged,"),
    ("full_scans", "full_scans", 1, "Statements that read a whole table, as logged,"),
    ("full_joins", "full_joins", 1, "Joins without an index, where logged,"),
    (
        "temporary_tables",
        "temporary_tables",
        1,
        "Statements with a temporary table, where logged,",
    ),
    (
        "disk_temporary_tables",
        "disk_temporary_tables",
        1,
        "Statements with a temporary table on disk, where logged,",
    ),
)

METRICS = (
    *(
        Declared(
            f"keylag_slow_log_{name}_total", "counter", f"{text} {_OF_CLASS}.", _CLASS
        )
        for name, _, _, text in COUNTERS
    ),
    Declared(
        "keylag_slow_log_statement_duration_seconds",
        "histogram",
        "Time in the server per statement, by part of Keystone.",
        _GROUP,
    ),
    Declared(
        "keylag_slow_log_class_info",
        "gauge",
        "Always 1: the fingerprint of each class, as pt-query-digest forms it.",
        ("id", "table_class", "fingerprint"),
    ),
    Declared("keylag_slow_log_classes", "gauge", "Classes in memory."),
    Declared(
        "keylag_slow_log_forgotten_classes_total",
        "counter",
        "Classes dropped because there were too many; their sums count as id=other.",
    ),
    Declared(
        "keylag_slow_log_skipped_events_total",
        "counter",
        "Events that could not be understood.",
    ),
    Declared(
        "keylag_slow_log_implausible_events_total",
        "counter",
        "Events left out because of an impossible number: a time below zero or above "
        "30 days, or more than 1e15 rows; by what it was first found in.",
        ("column",),
    ),
    Declared(
        "keylag_slow_log_read_bytes_total", "counter", "Bytes read since the start."
    ),
    Declared(
        "keylag_slow_log_behind_bytes", "gauge", "Bytes written but not yet read."
    ),
    Declared(
        "keylag_slow_log_start_info",
        "gauge",
        "Always 1: where reading began, at the saved place, at the end or at the start "
        "of the log.",
        ("place",),
    ),
    Declared(
        "keylag_slow_log_read_errors_total",
        "counter",
        "Times that a file could not be opened or read since the start; it is tried "
        "again.",
    ),
    Declared(
        "keylag_slow_log_lost_files_total",
        "counter",
        "Files given up before their end since the start: removed, compressed, "
        "overwritten or unreadable for too long.",
    ),
    Declared(
        "keylag_slow_log_file_changes_total",
        "counter",
        "Times the log was found renamed or truncated since the start.",
        ("change",),
    ),
)


def _open(settings: Mapping[str, Any]) -> Source:
    """Start following."""
    from keylag_exporters.slow_log.source import SlowLog  # noqa: PLC0415 -- see above

    return SlowLog(settings)


KIND = Kind(
    name="slow-log",
    help="Follow the slow log of MySQL or MariaDB and count by fingerprint class.",
    options=(
        Option("file", "The slow log to follow.", required=True),
        Option("state", "Where position and counts are kept over a restart."),
        Option(
            "from-start", "Begin with what is already in the log.", bool, default=False
        ),
        Option("top", "Classes that get series of their own.", int, 100),
    ),
    metrics=METRICS,
    open=_open,
    port=9721,
)
