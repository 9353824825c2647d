"""Count the events that Keystone inserts, whatever their ids are.

Ids do not count events: on Galera each node uses every n-th id, and TRUNCATE restarts
at 1. A rising row count does not either: every insert also purges expired events.
So the counter asks for the number of events by the second of their `revoked_at`, which
has an index, and adds what each second gained since the last reading. Purges and
TRUNCATE only remove events and change nothing; an event that is committed or replicated
late is added as soon as it is visible.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

OVERLAP = timedelta(minutes=5)
"""How late an event may become visible: slow commits, replication, clock skew."""

NEVER = datetime.max  # noqa: DTZ901 -- the driver returns naive datetimes

EVENTS_BY_SECOND = """
SELECT revoked_at, COUNT(*) FROM (
  SELECT revoked_at FROM revocation_event
   WHERE revoked_at >= %s ORDER BY revoked_at LIMIT {limit:d}) AS recent
 GROUP BY revoked_at
"""


class InsertCounter:
    """The number of events inserted since the first reading."""

    def __init__(self) -> None:
        self.total = 0
        self._counts: dict[datetime, int] = {}
        self._complete_from = NEVER  # `_counts` has every second from here on

    def read(self, cursor: Cursor, limit: int) -> None:
        """Add the events inserted since the last reading; the first adds none."""
        cursor.execute("SELECT UTC_TIMESTAMP()")
        ((now,),) = cursor.fetchall()
        horizon = now - OVERLAP
        start = min(self._complete_from, horizon)
        cursor.execute(EVENTS_BY_SECOND.format(limit=limit), (start,))
        for second, count in cursor.fetchall():
            known = self._counts.get(second, 0)
            if count > known:
                self._counts[second] = count
                self.total += (count - known) * (second >= self._complete_from)
        self._complete_from = horizon
        self._counts = {
            second: count for second, count in self._counts.items() if second >= horizon
        }
