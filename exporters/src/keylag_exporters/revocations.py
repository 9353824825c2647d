"""The revocations source: size of the revocation table and its cost per check.

Each statement has two bounds: the server's statement timeout and a LIMIT. All scrapes
of an interval share one read, so frequent scrapes cost the database nothing.

The prediction follows Keystone's query `Revoke._list_token_events`: a check fetches the
events issued after the token, except those with the user, project, audit id or trust of
another token. Events without these columns, above all those of an audit chain, are
fetched by every check and compared in Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keylag_exporters import mysql
from keylag_exporters.families import Families
from keylag_exporters.insert_counter import InsertCounter
from keylag_exporters.metric import Metric
from keylag_exporters.model import Option, SourceType
from keylag_exporters.settings import parse_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pymysql.cursors import Cursor

EVENT_KINDS = (
    ("audit_chain", "audit_chain_id"),
    ("audit_id", "audit_id"),
    ("access_token", "access_token_id"),
    ("consumer", "consumer_id"),
    ("trust", "trust_id"),
    ("role", "role_id"),
    ("project", "project_id"),
    ("user", "user_id"),
    ("domain", "domain_id"),
)
"""(kind, column), most specific first: an event has the first kind whose column is set.
keylag-otel assigns the same kinds inside Keystone; a test compares both."""

# (columns, release that added the index)
INDEXES = (
    ("revoked_at", "2023.1"),
    ("issued_before", "2023.1"),
    ("project_id,issued_before", "2023.1"),
    ("user_id,issued_before", "2023.1"),
    ("audit_id,issued_before", "2023.1"),
    ("project_id,user_id", "2026.1"),
    ("issued_before,user_id,project_id,audit_id", "2026.1"),
)

_WHEN_CLAUSES = " ".join(
    f"WHEN {column} IS NOT NULL THEN '{kind}'" for kind, column in EVENT_KINDS
)
EVENT_KIND_SQL = f"CASE {_WHEN_CLAUSES} ELSE 'other' END"
LIVE_CONDITION = "revoked_at >= UTC_TIMESTAMP() - INTERVAL {keep:d} SECOND"
EXPIRED_CONDITION = "revoked_at < UTC_TIMESTAMP() - INTERVAL {keep:d} SECOND"
LIVE_EVENTS_QUERY = f"""
SELECT kind, COUNT(*) FROM (
  SELECT {EVENT_KIND_SQL} AS kind
    FROM revocation_event WHERE {LIVE_CONDITION} LIMIT {{limit:d}}) AS live
 GROUP BY kind
"""  # noqa: S608 -- only constants
EXPIRED_EVENTS_QUERY = f"""
SELECT COUNT(*) FROM (
  SELECT 1 FROM revocation_event WHERE {EXPIRED_CONDITION} LIMIT {{limit:d}}) AS expired
"""  # noqa: S608 -- only constants
FETCHED_EVENTS_QUERY = """
SELECT COUNT(*) FROM (
  SELECT 1 FROM revocation_event
   WHERE issued_before >= UTC_TIMESTAMP() - INTERVAL {age:d} SECOND
     AND user_id IS NULL AND project_id IS NULL
     AND audit_id IS NULL AND trust_id IS NULL LIMIT {limit:d}) AS fetched
"""
OLDEST_EVENT_QUERY = """
SELECT TIMESTAMPDIFF(SECOND, MIN(revoked_at), UTC_TIMESTAMP()) FROM revocation_event
"""
INDEXES_QUERY = """
SELECT GROUP_CONCAT(column_name ORDER BY seq_in_index)
  FROM information_schema.statistics
 WHERE table_schema = DATABASE() AND table_name = 'revocation_event'
 GROUP BY index_name
"""

METRICS = (
    Metric(
        "keylag_revocations_live_events",
        "gauge",
        "Unexpired events by kind, counted up to the limit.",
        ("kind",),
    ),
    Metric(
        "keylag_revocations_expired_events",
        "gauge",
        "Expired events that are not purged yet, counted up to the limit.",
    ),
    Metric(
        "keylag_revocations_count_limit",
        "gauge",
        "Maximum of each count (option limit); the true number may be higher.",
    ),
    Metric(
        "keylag_revocations_oldest_event_age_seconds",
        "gauge",
        "Age of the oldest event; absent if the table is empty.",
    ),
    Metric(
        "keylag_revocations_inserted_total",
        "counter",
        "Events inserted since the exporter started.",
    ),
    Metric(
        "keylag_revocations_index_present",
        "gauge",
        "Whether an index on these columns exists; `since`: the release that added it.",
        ("columns", "since"),
    ),
    Metric(
        "keylag_revocations_events_per_check",
        "gauge",
        "Events that a check fetches for any token, at the end (whole) or in the middle"
        " (half) of the token's lifetime.",
        ("token_age",),
    ),
    Metric(
        "keylag_revocations_predicted_check_seconds",
        "gauge",
        "Events per check times the cost of one event (option event-seconds).",
        ("token_age",),
    ),
)


class RevocationsSource:
    """Reads the revocation table of one database."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._connector = mysql.Connector(settings)
        self._inserted = InsertCounter()

    def collect(self) -> Families:
        """Return all families; raises UnreachableError or pymysql.MySQLError."""
        families = Families(METRICS)
        with self._connector.cursor() as cursor:
            _limit_statement_time(cursor, self._settings["statement_seconds"])
            cursor.execute("SET SESSION TRANSACTION READ ONLY")
            self._add_event_counts(families, cursor)
            self._add_prediction(families, cursor)
            self._inserted.read(cursor, self._settings["limit"])
            families.add("keylag_revocations_inserted_total", self._inserted.total)
            _add_oldest_age(families, cursor)
            _add_indexes(families, cursor)
        return families

    def _add_event_counts(self, families: Families, cursor: Cursor) -> None:
        limit, keep = self._settings["limit"], _retention_seconds(self._settings)
        families.add("keylag_revocations_count_limit", limit)
        cursor.execute(LIVE_EVENTS_QUERY.format(keep=keep, limit=limit))
        live = dict(cursor.fetchall())
        for kind in (*(kind for kind, _ in EVENT_KINDS), "other"):
            families.add("keylag_revocations_live_events", live.get(kind, 0), kind)
        expired = _fetch_int(
            cursor, EXPIRED_EVENTS_QUERY.format(keep=keep, limit=limit)
        )
        families.add("keylag_revocations_expired_events", expired)

    def _add_prediction(self, families: Families, cursor: Cursor) -> None:
        lifetime, limit = self._settings["token_lifetime"], self._settings["limit"]
        for name, age in (("whole", lifetime), ("half", lifetime // 2)):
            events = _fetch_int(
                cursor, FETCHED_EVENTS_QUERY.format(age=age, limit=limit)
            )
            seconds = events * self._settings["event_seconds"]
            families.add("keylag_revocations_events_per_check", events, name)
            families.add("keylag_revocations_predicted_check_seconds", seconds, name)

    def close(self) -> None:
        """Do nothing: each read has its own connection."""


def _retention_seconds(settings: Mapping[str, Any]) -> int:
    lifetime: int = settings["token_lifetime"]
    buffer: int = settings["expiration_buffer"]
    return lifetime + buffer


def _limit_statement_time(cursor: Cursor, seconds: float) -> None:
    """Set the server's statement timeout, by MariaDB's or MySQL's variable."""
    cursor.execute("SELECT VERSION()")
    (version,) = cursor.fetchone() or ("",)
    if "mariadb" in str(version).lower():
        cursor.execute("SET SESSION max_statement_time = %s", (seconds,))
    else:
        cursor.execute("SET SESSION max_execution_time = %s", (round(seconds * 1000),))


def _fetch_int(cursor: Cursor, query: str) -> int:
    cursor.execute(query)
    (value,) = cursor.fetchone() or (0,)
    return int(value or 0)


def _add_oldest_age(families: Families, cursor: Cursor) -> None:
    cursor.execute(OLDEST_EVENT_QUERY)
    (age,) = cursor.fetchone() or (None,)
    if age is not None:
        families.add("keylag_revocations_oldest_event_age_seconds", float(age))


def _add_indexes(families: Families, cursor: Cursor) -> None:
    """Add which of Keystone's indexes exist, compared by their columns."""
    cursor.execute(INDEXES_QUERY)
    present = {row[0] for row in cursor.fetchall()}
    for columns, since in INDEXES:
        name = "keylag_revocations_index_present"
        families.add(name, columns in present, columns, since)


SOURCE_TYPE = SourceType(
    name="revocations",
    help="Measure the revocation table; predict the cost of a check.",
    options=(
        *mysql.connection_options(3306, "keylag"),
        Option("database", "Keystone's database.", default="keystone"),
        Option("limit", "Maximum of each count.", parse_count, 1_000_000),
        Option("statement-seconds", "Timeout of a statement, in seconds.", float, 2.0),
        Option(
            "token-lifetime", "Keystone's [token] expiration, in seconds.", int, 3600
        ),
        Option(
            "expiration-buffer", "[revoke] expiration_buffer, in seconds.", int, 1800
        ),
        Option(
            "event-seconds", "Cost of an event in a check, in seconds.", float, 20e-6
        ),
    ),
    metrics=METRICS,
    create=RevocationsSource,
    port=9723,
    interval=60.0,
)
