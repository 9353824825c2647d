"""Counters of statement classes, in bounded memory."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import asdict, dataclass, field, fields, replace
from operator import add, attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from keylag_exporters.readable_sql.statement import MAX_READABLE
from keylag_exporters.slow_log.fingerprint import MAX_FINGERPRINT, class_id
from keylag_exporters.slow_log.sql_comment import Tag
from keylag_exporters.slow_log.tables import table_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from keylag_exporters.slow_log.events import Fields, Rows

# Upper bounds in seconds: from an index look-up to a lock wait timeout.
BUCKETS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0)

MAX_SECONDS = 30 * 86400
MAX_ROWS = 10**15
"""Bounds of plausible numbers. Servers have logged negative times modulo 2**64
microseconds (18446744073709.55 seconds), and 2**32 milliseconds (50 days)."""

# For each column its index in Row, its type and its maximum.
COLUMN_LIMITS: dict[str, tuple[int, type[float], float]] = {
    "query_time": (1, float, MAX_SECONDS),
    "lock_time": (2, float, MAX_SECONDS),
    "rows_sent": (3, int, MAX_ROWS),
    "rows_examined": (4, int, MAX_ROWS),
}

_ADMINISTRATOR_COMMAND = b"administrator"
"""Prefix of commands for which pt-query-digest counts no rows."""

ClassKey: TypeAlias = tuple[str, Tag]
HistogramKey: TypeAlias = tuple[str, Tag]
CounterValues: TypeAlias = tuple[int, ...]
"""The counters of a class, in the order of COUNTER_FIELDS."""

# Per flag: texts in headers of MariaDB, Percona and MySQL 8 that set it, and those
# of them that have a zero and so do not.
FLAGS = {
    "errors": ((b"Last_errno: ", b"Errno: "), (b"Last_errno: 0", b"Errno: 0")),
    "full_scans": ((b"Full_scan: Yes",), ()),
    "full_joins": ((b"Full_join: Yes",), ()),
    "temporary_tables": (
        (b"Tmp_table: Yes", b"Created_tmp_tables: "),
        (b"Created_tmp_tables: 0",),
    ),
    "disk_temporary_tables": (
        (b"Tmp_table_on_disk: Yes", b"Created_tmp_disk_tables: "),
        (b"Created_tmp_disk_tables: 0",),
    ),
}


@dataclass(slots=True)
class Aggregate:
    """Counters over many events.

    Times are integers in microseconds, the precision of the log. Differences of
    integers are exact, so a counter computed from them never decreases. `buckets` are
    cumulative over BUCKETS.
    """

    count: int = 0
    query_time_us: int = 0
    lock_time_us: int = 0
    rows_sent: int = 0
    rows_examined: int = 0
    errors: int = 0
    full_scans: int = 0
    full_joins: int = 0
    temporary_tables: int = 0
    disk_temporary_tables: int = 0
    buckets: list[int] = field(default_factory=lambda: [0] * len(BUCKETS))

    @classmethod
    def from_rows(cls, rows: Rows) -> Aggregate:
        """Return the aggregate of a batch of events, computed column by column."""
        first_lines, query, lock, sent, examined, flags, _ = zip(*rows, strict=True)
        times = sorted(map(float, query))
        aggregate = cls(
            count=len(times),
            query_time_us=round(sum(times) * 1e6),
            lock_time_us=round(sum(map(float, lock)) * 1e6),
            rows_sent=sum(map(int, sent)),
            rows_examined=sum(map(int, examined)),
            buckets=[bisect_right(times, upper) for upper in BUCKETS],
        )
        aggregate._count_flags(b"\n".join(filter(None, first_lines + flags)))
        return aggregate

    def _count_flags(self, headers: bytes) -> None:
        for name, (set_by, unset_by) in FLAGS.items() if headers else ():
            setattr(
                self,
                name,
                sum(map(headers.count, set_by)) - sum(map(headers.count, unset_by)),
            )

    def add(self, other: Aggregate) -> None:
        """Add the counters of another aggregate."""
        for name in COUNTER_FIELDS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.buckets = list(map(add, self.buckets, other.buckets))

    def counter_values(self) -> CounterValues:
        """Return all counters except the buckets, in the order of COUNTER_FIELDS."""
        return _COUNTER_VALUES_OF(self)

    def copy(self) -> Aggregate:
        """Return an independent copy."""
        return replace(self, buckets=self.buckets.copy())

    def as_dict(self) -> dict[str, Any]:
        """Return the counters and buckets by name."""
        return asdict(self)


COUNTER_FIELDS = tuple(f.name for f in fields(Aggregate) if f.name != "buckets")
_COUNTER_VALUES_OF: Callable[[Aggregate], CounterValues] = attrgetter(*COUNTER_FIELDS)


class StatementClass:
    """The events of one fingerprint and tag: an aggregate and pending rows.

    `statement` is the readable form of the first statement; a state that an older
    version saved has none.
    """

    def __init__(self, fingerprint: bytes, tag: Tag) -> None:
        self.fingerprint = fingerprint[:MAX_FINGERPRINT]
        self.id = class_id(fingerprint)
        self.table_class = table_class(self.fingerprint)
        self.tag = tag
        self.statement: str | None = None
        self.aggregate = Aggregate()
        self.pending_rows: Rows = []

    @property
    def key(self) -> ClassKey:
        """The identity of this class."""
        return self.id, self.tag

    @property
    def readable(self) -> str:
        """A text for people: the statement, or the fingerprint without one."""
        return self.statement or self.fingerprint[:MAX_READABLE].decode(
            "utf-8", "replace"
        )

    @property
    def histogram_key(self) -> HistogramKey:
        """The labels of the histogram that this class is part of."""
        return self.table_class, self.tag

    def flush(self, implausible: dict[str, int]) -> Aggregate:
        """Aggregate the pending rows and return the aggregate of these rows.

        An event with an implausible number is excluded, and counted by column in
        `implausible`.
        """
        rows = self.pending_rows.copy()
        self.pending_rows.clear()
        if self.fingerprint.startswith(_ADMINISTRATOR_COMMAND):
            rows = list(map(_clear_command_rows, rows))
        for name, limit in COLUMN_LIMITS.items():
            plausible = _keep_plausible(rows, *limit)
            implausible[name] += len(rows) - len(plausible)
            rows = plausible
        increase = Aggregate.from_rows(rows) if rows else Aggregate()
        self.aggregate.add(increase)
        return increase

    def as_dict(self) -> dict[str, Any]:
        """Return the saved state, as JSON types."""
        return {
            "fingerprint": self.fingerprint.decode("latin-1"),
            "id": self.id,
            "statement": self.statement,
            "tag": list(self.tag),
            "totals": self.aggregate.as_dict(),
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> StatementClass:
        """Return the class of a saved state."""
        restored = cls(saved["fingerprint"].encode("latin-1"), Tag(*saved["tag"]))
        restored.id = saved["id"]
        restored.statement = saved.get("statement")
        restored.aggregate = Aggregate(**saved["totals"])
        return restored


def _clear_command_rows(row: Fields) -> Fields:
    """Return an event without row counts if it is an administrator command."""
    if not row[6].removeprefix(b"# ").startswith(_ADMINISTRATOR_COMMAND):
        return row
    return (*row[:3], b"0", b"0", *row[5:])


def _keep_plausible(
    rows: Rows, column: int, parse: type[float], maximum: float
) -> Rows:
    """Return the events whose number in a column is plausible."""
    values = list(map(parse, map(itemgetter(column), rows)))
    if not values or (min(values) >= 0 and max(values) <= maximum):
        return rows
    pairs = zip(rows, values, strict=True)
    return [row for row, value in pairs if 0 <= value <= maximum]
