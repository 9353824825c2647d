"""A client of the stack's database, which outlives restarts of the server."""

import time
from collections.abc import Callable
from contextlib import closing

import pymysql
from pymysql.cursors import Cursor

from keylag.faults.helpers.host import Host, ready
from keylag.stack_database import connect

RETRY_SECONDS = 0.5


def repeat(
    host: Host, work: Callable[[Cursor], object], through: str = "mariadb"
) -> None:
    """Call `work` with a cursor again and again until the process ends.

    `through` is the service that it connects to.
    """
    ready()
    for _ in host.turns():
        try:
            _repeat_while_connected(host, work, through)
        except pymysql.Error:
            # The database restarts.
            time.sleep(RETRY_SECONDS)


def _repeat_while_connected(
    host: Host, work: Callable[[Cursor], object], through: str
) -> None:
    with (
        closing(connect(host.folder, through)) as connection,
        connection.cursor() as cursor,
    ):
        for _ in host.turns():
            work(cursor)
