"""Writes of other clients of a Galera cluster, to a table of their own."""

from typing import Final

from keylag.faults.changes.helper import Helper
from keylag.faults.changes.sql import Sql
from keylag.faults.model import Change

TABLE: Final = "keylag_writes"
CREATE: Final = f"""\
CREATE OR REPLACE TABLE {TABLE}
(id INT PRIMARY KEY, number BIGINT NOT NULL) SELECT 1 AS id, 0 AS number"""
WRITE: Final = f"UPDATE {TABLE} SET number = number + 1"


def table() -> Change:
    """Return the change that makes the table."""
    return Sql([CREATE], [f"DROP TABLE IF EXISTS {TABLE}"])


def writes() -> Change:
    """Return the client that writes."""
    return Helper("writes", {"statement": WRITE})
