"""Holds locks on tables for a share of the time."""

import time

import pymysql

from keylag.faults.helpers.host import Host, ready
from keylag.stack_database import connect

RETRY_SECONDS = 0.5


def run(host: Host, tables: list[str], held_ms: float, free_ms: float) -> None:
    """Lock the tables and release them in turn until the process ends."""
    ready()
    for _ in host.turns():
        try:
            _lock(host, tables, held_ms / 1000, free_ms / 1000)
        except pymysql.Error:
            # The database restarts.
            time.sleep(RETRY_SECONDS)


def _lock(host: Host, tables: list[str], held: float, free: float) -> None:
    connection = connect(host.folder)
    names = ", ".join(f"`{table}` WRITE" for table in tables)
    with connection.cursor() as cursor:
        for _ in host.turns():
            cursor.execute(f"LOCK TABLES {names}")
            time.sleep(held)
            cursor.execute("UNLOCK TABLES")
            time.sleep(free)
