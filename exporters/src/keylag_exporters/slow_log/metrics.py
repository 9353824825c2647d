"""Metrics of the slow-log source."""

from __future__ import annotations

from keylag_exporters.model import Metric

_CLASS_LABELS = ("id", "table_class", "route", "operation")
_HISTOGRAM_LABELS = ("table_class", "route", "operation")
_BY_CLASS = "by class (an unchosen class counts as id=other)"

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
        Metric(
            f"keylag_slow_log_{name}_total",
            "counter",
            f"{text} {_BY_CLASS}.",
            _CLASS_LABELS,
        )
        for name, _, _, text in COUNTERS
    ),
    Metric(
        "keylag_slow_log_statement_duration_seconds",
        "histogram",
        "Time in the server per statement, by part of Keystone.",
        _HISTOGRAM_LABELS,
    ),
    Metric(
        "keylag_slow_log_class_info",
        "gauge",
        "Always 1: the fingerprint of each class, as pt-query-digest forms it.",
        ("id", "table_class", "fingerprint"),
    ),
    Metric("keylag_slow_log_classes", "gauge", "Classes in memory."),
    Metric(
        "keylag_slow_log_forgotten_classes_total",
        "counter",
        "Classes dropped because there were too many; their sums count as id=other.",
    ),
    Metric(
        "keylag_slow_log_skipped_events_total",
        "counter",
        "Events that could not be understood.",
    ),
    Metric(
        "keylag_slow_log_implausible_events_total",
        "counter",
        "Events left out because of an impossible number: a time below zero or above "
        "30 days, or more than 1e15 rows; by what it was first found in.",
        ("column",),
    ),
    Metric(
        "keylag_slow_log_read_bytes_total", "counter", "Bytes read since the start."
    ),
    Metric("keylag_slow_log_behind_bytes", "gauge", "Bytes written but not yet read."),
    Metric(
        "keylag_slow_log_start_info",
        "gauge",
        "Always 1: where reading began, at the saved place, at the end or at the start "
        "of the log.",
        ("place",),
    ),
    Metric(
        "keylag_slow_log_read_errors_total",
        "counter",
        "Times that a file could not be opened or read since the start; it is tried "
        "again.",
    ),
    Metric(
        "keylag_slow_log_lost_files_total",
        "counter",
        "Files given up before their end since the start: removed, compressed, "
        "overwritten or unreadable for too long.",
    ),
    Metric(
        "keylag_slow_log_file_changes_total",
        "counter",
        "Times the log was found renamed or truncated since the start.",
        ("change",),
    ),
)
