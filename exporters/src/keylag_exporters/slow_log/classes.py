"""What is counted for each class of statements, in bounded memory."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from keylag_exporters.slow_log.comment import Tag
from keylag_exporters.slow_log.fingerprint import MAX_TEXT, class_id
from keylag_exporters.slow_log.tables import table_class

if TYPE_CHECKING:
    from keylag_exporters.slow_log.events import Rows

# Upper bounds in seconds: from one index look-up to a lock wait that times out.
BUCKETS = (
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
    0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0,
)  # fmt: skip

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


@dataclass
class Totals:
    """Sums over events; times in seconds, `buckets` cumulative over BUCKETS."""

    count: int = 0
    query_time_seconds_sum: float = 0.0
    lock_time_seconds_sum: float = 0.0
    rows_sent: int = 0
    rows_examined: int = 0
    errors: int = 0
    full_scans: int = 0
    full_joins: int = 0
    temporary_tables: int = 0
    disk_temporary_tables: int = 0
    buckets: list[int] = field(default_factory=lambda: [0] * len(BUCKETS))

    def add(self, other: Totals, sign: int = 1) -> None:
        """Add (or with -1 take away) the sums of another."""
        for name in NUMBERS:
            setattr(self, name, getattr(self, name) + sign * getattr(other, name))
        pairs = zip(self.buckets, other.buckets, strict=True)
        self.buckets = [mine + sign * theirs for mine, theirs in pairs]

    def copy(self) -> Totals:
        """Return an independent copy."""
        twin = Totals()
        twin.add(self)
        return twin

    def count_rows(self, rows: Rows) -> None:
        """Add a batch of events, column by column."""
        before, query, lock, sent, examined, flags, _ = zip(*rows, strict=True)
        times = sorted(map(float, query))
        self.count += len(times)
        self.query_time_seconds_sum += sum(times)
        self.lock_time_seconds_sum += sum(map(float, lock))
        self.rows_sent += sum(map(int, sent))
        self.rows_examined += sum(map(int, examined))
        counts = zip(self.buckets, BUCKETS, strict=True)
        self.buckets = [n + bisect_right(times, upper) for n, upper in counts]
        self._count_flags(b"\n".join(filter(None, before + flags)))

    def _count_flags(self, headers: bytes) -> None:
        """Count each flag in the joined headers of a batch."""
        for name, (yes, no) in FLAGS.items() if headers else ():
            count = sum(map(headers.count, yes)) - sum(map(headers.count, no))
            setattr(self, name, getattr(self, name) + count)


NUMBERS = tuple(n for n in Totals.__dataclass_fields__ if n != "buckets")


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
    def key(self) -> tuple[str, Tag]:
        """What tells this class from all others."""
        return self.id, self.tag

    def flush(self) -> None:
        """Sum the pending events."""
        if self.pending:
            rows, self.pending[:] = list(self.pending), []
            self.totals.count_rows(rows)

    def as_dict(self) -> dict[str, Any]:
        """Return what a restart needs to go on counting."""
        return {
            "fingerprint": self.fingerprint.decode("latin-1"),
            "id": self.id,
            "tag": list(self.tag),
            "totals": vars(self.totals),
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> StatementClass:
        """Return the class that `as_dict` described."""
        made = cls(saved["fingerprint"].encode("latin-1"), Tag(*saved["tag"]))
        made.id = saved["id"]
        made.totals = Totals(**saved["totals"])
        return made
