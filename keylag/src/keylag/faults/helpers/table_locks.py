"""Holds locks on tables for a share of the time."""

import time

from pymysql.cursors import Cursor

from keylag.faults.helpers.database_client import repeat
from keylag.faults.helpers.host import Host


def run(host: Host, tables: list[str], held_ms: float, free_ms: float) -> None:
    """Lock the tables and release them in turn until the process ends."""
    names = ", ".join(f"`{table}` WRITE" for table in tables)

    def lock(cursor: Cursor) -> None:
        cursor.execute(f"LOCK TABLES {names}")
        time.sleep(held_ms / 1000)
        cursor.execute("UNLOCK TABLES")
        time.sleep(free_ms / 1000)

    repeat(host, lock)
