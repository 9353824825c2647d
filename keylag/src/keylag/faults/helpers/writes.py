"""Writes rows all the time, as other services of a cloud do in its database."""

import time
from contextlib import closing

import pymysql

from keylag.faults.helpers.host import Host, ready
from keylag.stack_database import connect

RETRY_SECONDS = 0.5


def run(host: Host, statement: str) -> None:
    """Run a statement again and again until the process ends."""
    ready()
    for _ in host.turns():
        try:
            _write(host, statement)
        except pymysql.Error:
            # The database restarts.
            time.sleep(RETRY_SECONDS)


def _write(host: Host, statement: str) -> None:
    with closing(connect(host.folder)) as connection, connection.cursor() as cursor:
        for _ in host.turns():
            cursor.execute(statement)
