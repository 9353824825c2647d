"""A connection to the database of a stack."""

from pathlib import Path

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from keylag.services.base import HOST
from keylag.stack_record import StackRecord, load_secrets


def connect(folder: Path) -> "Connection[Cursor]":
    """Connect to Keystone's database as Keystone; raises pymysql.Error."""
    return pymysql.connect(
        host=HOST,
        port=StackRecord.load(folder).ports["mariadb"],
        user="keystone",
        password=load_secrets(folder / "data").database,
        database="keystone",
        autocommit=True,
    )
