"""What is counted for each class of statements, in bounded memory."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import asdict, dataclass, field, fields, replace
from operator import add, attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from keylag_exporters.slow_log.comment import Tag
from keylag_exporters.slow_log.fingerprint import MAX_TEXT, class_id
from keylag_exporters.slow_log.tables import table_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from keylag_exporters.slow_log.events import Fields, Rows

# Upper bounds in seconds: from one index look-up to a lock wait that times out.
BUCKETS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0)

MAX_SECONDS = 30 * 86400
MAX_ROWS = 10**15
"""What no statement can reach. Servers have logged negative numbers as 2**64 less them,
which is 18446744073709.55 in seconds, and 2**32 milliseconds, which is 50 days."""

# column of an event: where it is, how to read it, the most that is plausible
LIMITS: dict[str, tuple[int, type[float], float]] = {
    "query_time": (1, float, MAX_SECONDS),
    "lock_time": (2, float, MAX_SECONDS),
    "rows_sent": (3, int, MAX_ROWS),
    "rows_examined": (4, int, MAX_ROWS),
}

_COMMAND = b"administrator"
"""How the commands begin of which pt-query-digest counts no rows."""

Key: TypeAlias = tuple[str, Tag]
Group: TypeAlias = tuple[str, Tag]
Sums: TypeAlias = tuple[int, ...]
"""Those of a class by NUMBERS."""

# flag of an event: what says so in the headers of MariaDB, Percona and MySQL 8, and
# what of that has to be taken away again, a number of zero
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
class Totals:
    """Sums over events.

    Times are whole microseconds, the precision of the log: differences of such sums
    are exact, so that a counter made of them never steps back. `buckets` are
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
    def of(cls, rows: Rows) -> Totals:
        """Return the sums of a batch of events, made column by column."""
        before, query, lock, sent, examined, flags, _ = zip(*rows, strict=True)
        times = sorted(map(float, query))
        made = cls(
            count=len(times),
            query_time_us=round(sum(times) * 1e6),
            lock_time_us=round(sum(map(float, lock)) * 1e6),
            rows_sent=sum(map(int, sent)),
            rows_examined=sum(map(int, examined)),
            buckets=[bisect_right(times, upper) for upper in BUCKETS],
        )
        made._count_flags(b"\n".join(filter(None, before + flags)))
        return made

    def _count_flags(self, headers: bytes) -> None:
        """Count each flag in the joined headers of a batch."""
        for name, (yes, no) in FLAGS.items() if headers else ():
            setattr(
                self, name, sum(map(headers.count, yes)) - sum(map(headers.count, no))
            )

    def add(self, other: Totals) -> None:
        """Add the sums of another."""
        for name in NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.buckets = list(map(add, self.buckets, other.buckets))

    def numbers(self) -> Sums:
        """Return all sums but the buckets, in the order of NUMBERS."""
        return _NUMBERS_OF(self)

    def copy(self) -> Totals:
        """Return an independent copy."""
        return replace(self, buckets=self.buckets.copy())

    def as_dict(self) -> dict[str, Any]:
        """Return the sums by name."""
        return asdict(self)


NUMBERS = tuple(f.name for f in fields(Totals) if f.name != "buckets")
_NUMBERS_OF: Callable[[Totals], Sums] = attrgetter(*NUMBERS)


class StatementClass:
    """The events of one fingerprint under one tag, and those not yet summed."""

    def __init__(self, fingerprint: bytes, tag: Tag) -> None:
        self.fingerprint = fingerprint[:MAX_TEXT]
        self.id = class_id(fingerprint)
        self.table_class = table_class(self.fingerprint)
        self.tag = tag
        self.totals = Totals()
        self.pending: Rows = []

    @property
    def key(self) -> Key:
        """What tells this class from all others."""
        return self.id, self.tag

    @property
    def group(self) -> Group:
        """The histogram that this class is part of."""
        return self.table_class, self.tag

    def flush(self, implausible: dict[str, int]) -> Totals:
        """Sum the pending events and return what they add.

        An event with an implausible number is left out and counted by its column.
        """
        rows = self.pending.copy()
        self.pending.clear()
        if self.fingerprint.startswith(_COMMAND):
            rows = list(map(_without_rows, rows))
        for name, limit in LIMITS.items():
            plausible = _plausible(rows, *limit)
            implausible[name] += len(rows) - len(plausible)
            rows = plausible
        more = Totals.of(rows) if rows else Totals()
        self.totals.add(more)
        return more

    def as_dict(self) -> dict[str, Any]:
        """Return what a restart needs to go on counting."""
        return {
            "fingerprint": self.fingerprint.decode("latin-1"),
            "id": self.id,
            "tag": list(self.tag),
            "totals": self.totals.as_dict(),
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> StatementClass:
        """Return the class that `as_dict` described."""
        made = cls(saved["fingerprint"].encode("latin-1"), Tag(*saved["tag"]))
        made.id = saved["id"]
        made.totals = Totals(**saved["totals"])
        return made


def _without_rows(row: Fields) -> Fields:
    """Return an event with no rows if it is a command, however that was logged."""
    if not row[6].removeprefix(b"# ").startswith(_COMMAND):
        return row
    return (*row[:3], b"0", b"0", *row[5:])


def _plausible(rows: Rows, column: int, kind: type[float], most: float) -> Rows:
    """Return the events whose number in a column is plausible."""
    values = list(map(kind, map(itemgetter(column), rows)))
    if not values or (min(values) >= 0 and max(values) <= most):
        return rows
    pairs = zip(rows, values, strict=True)
    return [row for row, value in pairs if 0 <= value <= most]
