"""Keeps a connection of ProxySQL in transactions for a share of the time."""

import time

from pymysql.cursors import Cursor

from keylag.faults.helpers.database_client import repeat
from keylag.faults.helpers.host import Host


def run(host: Host, open_ms: float, closed_ms: float) -> None:
    """Begin and commit transactions in turn until the process ends."""

    def transact(cursor: Cursor) -> None:
        cursor.execute("START TRANSACTION")
        time.sleep(open_ms / 1000)
        cursor.execute("COMMIT")
        time.sleep(closed_ms / 1000)

    repeat(host, transact, through="proxysql")
