"""Counts the revocation events that Keystone inserts.

Ids cannot be counted: on Galera each node uses every n-th id, and TRUNCATE restarts at
1. Row counts cannot either, because each insert also purges expired events. This
counter therefore reads the number of events per second of `revoked_at`, which is
indexed, and adds what each second gained since the last read. Purges and TRUNCATE only
remove events. An event that is committed or replicated late is added once it is
visible.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

MAX_DELAY = timedelta(minutes=5)
"""Maximum delay until an event is visible: commits, replication, clock skew."""

NEVER = datetime.max  # noqa: DTZ901 -- the driver returns naive datetimes

EVENTS_BY_SECOND_QUERY = """
SELECT revoked_at, COUNT(*) FROM (
  SELECT revoked_at FROM revocation_event
   WHERE revoked_at >= %s ORDER BY revoked_at LIMIT {limit:d}) AS recent
 GROUP BY revoked_at
"""


class InsertCounter:
    """Number of events inserted since the first read."""

    def __init__(self) -> None:
        self.total = 0
        self._events_by_second: dict[datetime, int] = {}
        self._complete_from = NEVER  # from here on `_events_by_second` is complete

    def read(self, cursor: Cursor, limit: int) -> None:
        """Add the events inserted since the last read; the first read adds none.

        Reads at most `limit` events.
        """
        cursor.execute("SELECT UTC_TIMESTAMP()")
        ((now,),) = cursor.fetchall()
        horizon = now - MAX_DELAY
        start = min(self._complete_from, horizon)
        cursor.execute(EVENTS_BY_SECOND_QUERY.format(limit=limit), (start,))
        for second, count in cursor.fetchall():
            previous = self._events_by_second.get(second, 0)
            if count > previous:
                self._events_by_second[second] = count
                self.total += (count - previous) * (second >= self._complete_from)
        self._complete_from = horizon
        self._events_by_second = {
            second: count
            for second, count in self._events_by_second.items()
            if second >= horizon
        }
