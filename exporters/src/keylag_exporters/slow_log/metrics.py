"""Metrics of the slow-log source."""

from __future__ import annotations

from keylag_exporters.metric import Metric

_CLASS_LABELS = ("id", "table_class", "route", "operation")
_HISTOGRAM_LABELS = ("table_class", "route", "operation")
_BY_CLASS = "by class (classes that are not selected count as id=other)"

# (metric, field of Aggregate, factor, help)
COUNTERS = (
    ("calls", "count", 1, "Statements in the slow log"),
    ("query_time_seconds", "query_time_us", 1e-6, "Time in the server"),
    ("lock_time_seconds", "lock_time_us", 1e-6, "Time waiting for locks"),
    ("rows_sent", "rows_sent", 1, "Rows sent to clients"),
    ("rows_examined", "rows_examined", 1, "Rows read by the server"),
    ("errors", "errors", 1, "Failed statements, if logged,"),
    ("full_scans", "full_scans", 1, "Statements with a full scan, if logged,"),
    ("full_joins", "full_joins", 1, "Statements with a join without index, if logged,"),
    (
        "temporary_tables",
        "temporary_tables",
        1,
        "Statements with a temporary table, if logged,",
    ),
    (
        "disk_temporary_tables",
        "disk_temporary_tables",
        1,
        "Statements with a temporary table on disk, if logged,",
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
        "Always 1: each class as a readable statement, and the fingerprint that "
        "pt-query-digest computes.",
        ("id", "table_class", "statement", "fingerprint"),
    ),
    Metric("keylag_slow_log_classes", "gauge", "Classes in memory."),
    Metric(
        "keylag_slow_log_forgotten_classes_total",
        "counter",
        "Classes dropped to bound memory; their counts are part of id=other.",
    ),
    Metric(
        "keylag_slow_log_skipped_events_total",
        "counter",
        "Events that could not be parsed.",
    ),
    Metric(
        "keylag_slow_log_implausible_events_total",
        "counter",
        "Events excluded for an implausible number (a time below 0 or above 30 days, "
        "or more than 1e15 rows), by the first such column.",
        ("column",),
    ),
    Metric(
        "keylag_slow_log_read_bytes_total", "counter", "Bytes read since the start."
    ),
    Metric("keylag_slow_log_behind_bytes", "gauge", "Bytes written but not yet read."),
    Metric(
        "keylag_slow_log_start_info",
        "gauge",
        "Always 1: where reading started: `saved` position, `end` or `start` of the "
        "log.",
        ("place",),
    ),
    Metric(
        "keylag_slow_log_read_errors_total",
        "counter",
        "Failures to open or read a file since the start; each is retried.",
    ),
    Metric(
        "keylag_slow_log_lost_files_total",
        "counter",
        "Files given up with unread bytes since the start: removed, compressed, "
        "overwritten or unreadable for too long.",
    ),
    Metric(
        "keylag_slow_log_file_changes_total",
        "counter",
        "Renames and truncations of the log since the start.",
        ("change",),
    ),
)
