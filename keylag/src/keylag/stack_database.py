"""A connection to the database of a stack."""

from pathlib import Path

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from keylag.services.base import HOST
from keylag.stack_record import StackRecord, load_secrets


def connect(folder: Path, through: str = "mariadb") -> "Connection[Cursor]":
    """Connect to Keystone's database as Keystone; raises pymysql.Error.

    `through` is the service that answers: the server, or ProxySQL before it.
    """
    return pymysql.connect(
        host=HOST,
        port=StackRecord.load(folder).ports[through],
        user="keystone",
        password=load_secrets(folder / "data").database,
        database="keystone",
        autocommit=True,
    )
