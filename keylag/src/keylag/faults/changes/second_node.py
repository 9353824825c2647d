"""Statements at the second node of a Galera cluster, which the first does not get."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keylag.faults.site import Site


@dataclass(frozen=True)
class SecondNode:
    """Statements as the second node's administrator; a restart takes them back too.

    After them the node joins the cluster again, if it has left.
    """

    statements: Sequence[str]
    undo_statements: Sequence[str]

    def apply(self, site: "Site") -> None:
        """Run the statements."""
        site.administer_second_node(self.statements)

    def undo(self, site: "Site") -> None:
        """Run those that take them back, if the node runs."""
        # Without the first node it cannot join; both restart together then.
        if site.processes("mariadb") and site.processes("galera"):
            site.administer_second_node(self.undo_statements)
