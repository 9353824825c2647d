"""Holds row locks in a transaction for a share of the time."""

import time

from pymysql.cursors import Cursor

from keylag.faults.helpers.database_client import repeat
from keylag.faults.helpers.host import Host


def run(host: Host, table: str, held_ms: float, free_ms: float) -> None:
    """Lock all rows of a table, and the gaps between, until the process ends."""

    def lock(cursor: Cursor) -> None:
        cursor.execute("START TRANSACTION")
        cursor.execute(f"SELECT COUNT(*) FROM `{table}` FOR UPDATE")
        time.sleep(held_ms / 1000)
        cursor.execute("COMMIT")
        time.sleep(free_ms / 1000)

    repeat(host, lock)
