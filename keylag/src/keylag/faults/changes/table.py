"""A table replaced by an altered copy; the original waits under another name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keylag.faults.site import Site

SAVED = "keylag_saved_"
ALTERED = "keylag_altered_"


@dataclass(frozen=True)
class ReplacedTable:
    """A copy of a table with other indexes and more rows takes the table's place.

    The original keeps its definition, so taking back restores it exactly.  Rows that
    Keystone writes meanwhile move to the original.
    """

    table: str
    alterations: Sequence[str]
    """Statements that alter the copy; {table} is its name."""
    own_rows: str
    """A condition on the rows that the alterations have added."""

    def apply(self, site: "Site") -> None:
        """Alter a copy, then let copy and table change places."""
        table, saved, copy = self.table, SAVED + self.table, ALTERED + self.table
        site.execute(
            [
                f"DROP TABLE IF EXISTS {copy}",
                f"CREATE TABLE {copy} LIKE {table}",
                f"INSERT INTO {copy} SELECT * FROM {table}",
                *(statement.format(table=copy) for statement in self.alterations),
                f"ANALYZE TABLE {copy}",
                f"RENAME TABLE {table} TO {saved}, {copy} TO {table}",
            ]
        )

    def undo(self, site: "Site") -> None:
        """Move new rows to the original, and let it return."""
        table, saved, copy = self.table, SAVED + self.table, ALTERED + self.table
        if site.query(f"SHOW TABLES LIKE '{saved}'"):
            new = f"SELECT * FROM {table} WHERE NOT ({self.own_rows})"
            site.execute(
                [
                    f"DROP TABLE IF EXISTS {copy}",
                    f"INSERT IGNORE INTO {saved} {new}",
                    f"RENAME TABLE {table} TO {copy}, {saved} TO {table}",
                ]
            )
        site.execute([f"DROP TABLE IF EXISTS {copy}"])
