"""Statements in the stack's database, and at ProxySQL's administration."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keylag.faults.site import Site


@dataclass(frozen=True)
class Sql:
    """Statements as Keystone's account, and those that take them back.

    The latter have the same result if they run twice, or alone.
    """

    statements: Sequence[str]
    undo_statements: Sequence[str]

    def apply(self, site: "Site") -> None:
        """Run the statements."""
        site.execute(self.statements)

    def undo(self, site: "Site") -> None:
        """Run those that take them back."""
        site.execute(self.undo_statements)


@dataclass(frozen=True)
class ProxySql:
    """Statements at ProxySQL's administration; a restart takes them back too."""

    statements: Sequence[str]
    undo_statements: Sequence[str]

    def apply(self, site: "Site") -> None:
        """Run the statements."""
        site.administer_proxysql(self.statements)

    def undo(self, site: "Site") -> None:
        """Run those that take them back, if ProxySQL runs."""
        if site.processes("proxysql"):
            site.administer_proxysql(self.undo_statements)
